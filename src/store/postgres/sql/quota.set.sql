-- unfenced: a setting, written by an operator under the row's lock
update tape.quotas set runs = :runs, bytes = :bytes, schedules = :schedules, streams = :streams where tenant = :tenant
