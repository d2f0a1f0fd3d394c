-- read
select current_setting('tape.guarded', true) as mark
