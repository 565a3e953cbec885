"""Scripts of the makefile and of the tests."""
