-- unfenced: see note.count
insert into records(journal, seq, token, at, kind, body) values (-:journal, :seq, 0, :at, :kind, :body)
