-- unfenced: the store's own journal, number 1
insert into records(journal, seq, token, at, kind, body)
select 1, max(seq) + 1, 0, :at, :kind, :body from records where journal = 1
