-- read
select n from tape.note_keys where journal = :journal and key = :key
