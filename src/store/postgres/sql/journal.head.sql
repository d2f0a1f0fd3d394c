-- read
select coalesce(max(seq), 0) as head from tape.records where journal = :journal
