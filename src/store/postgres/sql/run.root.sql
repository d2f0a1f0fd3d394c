-- read
select root from tape.runs where journal = :journal
