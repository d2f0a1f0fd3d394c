-- unfenced: this is the guard; its row stays locked until the user's transaction ends, so tokens pass one after the other
insert into tape_guards as g (scope, token) values (:scope, :token)
on conflict (scope) do update set token = greatest(g.token, excluded.token)
returning cast(g.token as text) as token, set_config('tape.guarded', :mark, true) as mark
