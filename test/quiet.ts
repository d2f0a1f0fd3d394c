/** What apps of the suite log to stderr by default would bury its own words; tests of the log say what they want. */
process.env.TAPE_LOG_LEVEL ??= "silent";
