-- unfenced: the first process that has to do with it says how far the two clocks are apart; all others count by that
update meta set anchor = :anchor where anchor is null
