-- read
select journal, seq, cast(token as text) as token, at, kind, body from tape.records
where journal = :journal and seq >= :from order by seq limit :limit
