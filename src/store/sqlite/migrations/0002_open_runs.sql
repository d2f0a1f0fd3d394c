-- No statement reads it, and every run that begins or ends had to write it.
drop index runs_open;
