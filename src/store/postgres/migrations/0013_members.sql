-- online
-- Its predecessor was of runs with a parent, like runs_parent, so that the planner took either for the children of one
-- run: in a large tree each of these lookups read the whole tree.
create index concurrently runs_members on tape.runs(root) where root <> journal;
drop index concurrently if exists tape.runs_tree;
