-- unfenced: this is the guard; the user's transaction is the only one that writes until it ends
insert into tape_guards(scope, token) values (:scope, :token)
on conflict (scope) do update set token = max(token, excluded.token)
returning cast(token as text) as token
