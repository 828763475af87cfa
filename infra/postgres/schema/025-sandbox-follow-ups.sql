-- Targets of the workspace that waited for a try of their first comment, or of a step such as a cover, when the clock was last moved.
-- They are published, and no index of open targets has them; what is scheduled since goes by the clock as it is.
alter table ops.sandbox_clocks add column follow_ups uuid[] not null default '{}';
