-- read
select n from note_keys where journal = :journal and key = :key
