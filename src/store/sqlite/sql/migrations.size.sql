-- read
-- About how many runs there are: the number of the newest, which costs nothing to find.
select coalesce(max(journal), 0) as runs from runs
