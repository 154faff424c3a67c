"""Tests of dtrees, in the folders of the package, and what they share."""
