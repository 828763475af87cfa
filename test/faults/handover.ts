import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { publicTypesOf } from '#projections/webhooks/types.ts';
import { kindOf } from '#schemas/topics.ts';
import { until } from '#test/support/until.ts';
import type { FaultWorld } from './world.ts';

/**
 * Webhook jobs that one build writes and begins, and another one ends: a replay, and the catch-up of a changed filter,
 * each of its own endpoint. A trigger in Postgres holds each job back once a page of it was read.
 */
const holdJobs = `
  create table if not exists public.held_endpoints (id uuid primary key);
  create or replace function public.hold_job() returns trigger language plpgsql as $$
  begin
    if new.status = 'running' and new.settle_at is not null
      and exists (select from public.held_endpoints h where h.id = new.endpoint_id) then
      new.not_before := now() + interval '1 hour';
    end if;
    return new;
  end $$;
  create or replace trigger hold_job before update on ops.webhook_jobs for each row execute function public.hold_job()`;

const replayed = ['client.created'];

export class Handover {
  readonly #world: FaultWorld;
  readonly #since = new Date(Date.now() - 3_600_000).toISOString();
  #endpointId = '';
  #turn = 0;
  #jobs: readonly string[] = [];

  constructor(world: FaultWorld) {
    this.#world = world;
  }

  async prepare(): Promise<void> {
    const { hooks, load, adapters } = this.#world;
    await adapters.pool.query(holdJobs);
    const body = { url: `http://${hooks.host}/replayed`, events: replayed };
    const { status, data } = await load.call('POST', '/webhooks', body, randomUUID());
    assert.equal(status, 200);
    this.#endpointId = data.id;
  }

  async begin(): Promise<void> {
    const { load, adapters } = this.#world;
    await adapters.pool.query('insert into public.held_endpoints values ($1)', [this.#endpointId]);
    this.#turn += 1;
    const path = `/webhooks/${this.#endpointId}`;
    const events = this.#turn % 2 === 0 ? replayed : [...replayed, 'client.archived'];
    const changed = await load.call('PATCH', path, { events });
    assert.equal(changed.status, 200, String(changed.code));
    const body = { from: this.#since, types: replayed };
    const asked = await load.call('POST', `${path}/replays`, body, randomUUID());
    assert.equal(asked.status, 200, String(asked.code));
    const held = `select id::text as id, kind from ops.webhook_jobs where endpoint_id = $1 and status = 'running'
      and settle_at is not null`;
    const { rows } = await until(
      'both jobs have begun',
      async () => {
        const found = await adapters.pool.query<{ id: string; kind: string }>(held, [this.#endpointId]);
        return new Set(found.rows.map(({ kind }) => kind)).size === 2 ? found : null;
      },
      { withinMs: 60_000 },
    );
    this.#jobs = rows.map(({ id }) => id);
  }

  /** The other build ends them; the replay's deliveries are those of the streams. */
  async end(): Promise<void> {
    const { pool } = this.#world.adapters;
    await pool.query('delete from public.held_endpoints');
    await pool.query('update ops.webhook_jobs set not_before = now() where id = any($1)', [this.#jobs]);
    const ended = async () => {
      const { rows } = await pool.query<Record<'kind' | 'status', string> & { minted: number; from: Date; to: Date }>(
        `select kind, status, minted::int as minted, from_time as from, to_time as to from ops.webhook_jobs where id = any($1)`,
        [this.#jobs],
      );
      return rows.every(({ status }) => status !== 'running') ? rows : null;
    };
    const rows = await until('both jobs have ended', ended, { withinMs: 60_000 });
    for (const { kind, status } of rows) assert.equal(status, 'completed', kind);
    const replay = rows.find(({ kind }) => kind === 'replay');
    assert.ok(replay !== undefined && replay.minted > 0);
    assert.equal(replay.minted, await this.#createdIn(replay.from, replay.to));
  }

  async #createdIn(from: Date, to: Date): Promise<number> {
    const { store, pool } = this.#world.adapters;
    const { rows } = await pool.query('select workspace_id::text as id from ops.webhook_endpoints where id = $1', [
      this.#endpointId,
    ]);
    let found = 0;
    for (let after: bigint | null = null; ; ) {
      const page = await store.readAll({ after, limit: 1_000 });
      const last = page.at(-1);
      if (last === undefined) return found;
      after = last.position;
      for (const event of await this.#world.codec.decodeAll(page.filter(({ stream }) => kindOf(stream) === 'client'))) {
        const at = Date.parse(event.metadata.occurredAt);
        const isMeant = event.metadata.workspaceId === rows[0]?.id && at >= from.getTime() && at < to.getTime();
        if (isMeant) found += publicTypesOf(event, 'client').filter((type) => replayed.includes(type)).length;
      }
    }
  }
}
