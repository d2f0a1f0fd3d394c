-- read
select journal, seq, cast(token as text) as token, at, kind, body from records
where journal = :journal and kind in ('run.created', 'term.begun', 'term.ended', 'run.ended') order by seq
