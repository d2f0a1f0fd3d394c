-- No statement reads it, and every run that begins or ends had to write it.
drop index tape.runs_open;
