#!/bin/sh
# The browser that tests of the HTML page drive: installed where that is allowed, asked for elsewhere.
set -eu

present() {
    command -v chromium >/dev/null 2>&1 && command -v chromedriver >/dev/null 2>&1
}

if present; then
    exit 0
fi

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing chromium and chromium-driver for the tests of the HTML page"
    if DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null &&
        present; then
        exit 0
    fi
    echo "apt-get could not install them: see its messages above." >&2
    exit 1
fi

echo "The tests of the HTML page drive a real browser, and this user may not install it." >&2
echo "Please install Chromium and its driver, for example:" >&2
echo "    sudo apt-get install chromium chromium-driver    # Debian" >&2
echo "so that the commands chromium and chromedriver are found, and try again." >&2
exit 1
