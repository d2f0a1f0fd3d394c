-- read
select coalesce(max(seq), 0) as head from records where journal = :journal
