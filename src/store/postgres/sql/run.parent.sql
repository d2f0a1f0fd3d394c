-- read
select parent from tape.runs where journal = :journal
