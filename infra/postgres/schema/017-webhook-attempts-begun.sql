-- A delivery leaves the queue with an attempt that may be under way, when it is canceled or fails unsent. If it is queued again, its
-- numbers go on behind that attempt: a receiver gets each number once.

-- Number of the last attempt that had begun then; null: it has not left the queue in this way.
alter table ops.webhook_deliveries add column begun int4;
