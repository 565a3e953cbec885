"""Strings that try to leave the place they are put in."""

HOSTILE = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    "<!-- <script> --!> ]]>",
    '"><img src=x onerror="window.hacked = 3">',
    "' onmouseover='window.hacked = 4",
    "<img src=http://127.0.0.1:9/leak.png><link rel=stylesheet href=//127.0.0.1:9/leak.css>",
    "javascript:window.hacked=5",
    "{{ 7 * 7 }} {% raw %} ${window.hacked=6} `window.hacked=7`",
    "line\u2028separator\u2029paragraph\r\nreturn\ttab",
    "\u202eright to left\u202c \u200f \u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "nul\x00inside, bell\x07, delete\x7f",
    "lone \ud800 surrogate and a pair \U0001f600 after",
    "&lt;b&gt; &amp; &#60; \\u003cscript\\u003e \\",
    "a" * 3000,
    " ",
)
