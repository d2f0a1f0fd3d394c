-- unfenced: which file this is, as the process that opens it sees it
update meta set file = :file
