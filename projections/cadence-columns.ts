/**
 * How a target's row counts against the limits of its account. Indexes are made of these expressions, and a query uses
 * them only where it has the same text.
 */

/**
 * The instant that counts. What was published counts from its publication, what its network will publish from its time.
 * While an attempt is under way it counts from its last step, and while its outcome is unknown from the time of the first
 * question, which is just behind the call. A thread that has ended, or waits, with segments out counts from its last change.
 */
export const slotAtSql = `(case when published_at is not null then published_at
  when schedule_mode = 'native' then due_at
  when status in ('publishing', 'outcome_unknown') then next_action_at
  when segments is not null then updated_at
  else coalesce(retry_at, due_at) end)`;

export const countedSql = `(status <> all ('{failed,canceled}'::text[]) or segments is not null)`;

/** Deferred, for whatever reason. */
export const waitingSql = `status = 'pending' and failure is not null`;
