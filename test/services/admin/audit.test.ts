import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { workspaceOf } from '#contracts/ports/event-store.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { callerOf } from '#test/support/http.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { Process, run, start } from '#test/support/processes.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';

/** The auditors' commands, over processes apart; what they export is verified by Node alone, in another folder. */

suite('audit', { timeoutMs: 180_000 }, (t) => {
  let env: Record<string, string>;
  let projections: Process;
  let api: Process;
  let pool: pg.Pool;
  let owner: ReturnType<typeof callerOf>;
  const scratch = mkdtempSync(path.join(tmpdir(), 'audit-'));
  afterFile(async () => rmSync(scratch, { recursive: true, force: true }));

  const admin = (...args: readonly string[]) => run('services/admin/main.ts', { env, args: [...args] });
  const json = async (...args: readonly string[]) => {
    const { code, output } = await admin(...args, '--json');
    equal(code, 0, output);
    return JSON.parse(output.slice(output.search(/^[[{]/m)));
  };
  const numbered = () =>
    until('all events are numbered', async () => {
      const { rows } = await pool.query(
        'select (select position from ops.feed_position) = (select max(position) from es.events) as done',
      );
      return rows[0]?.done === true;
    });
  const newClient = async (): Promise<string> => {
    const made = await owner.post('/clients', { name: `Client ${randomUUID()}`, type: 'brand' });
    equal(made.status, 200, made.text);
    return made.data.id;
  };

  /** The same change again and again, as the store has it. */
  const manyChanges = async (clientId: string, count: number): Promise<void> => {
    equal((await owner.patch(`/clients/${clientId}`, { name: `Renamed ${randomUUID()}` })).status, 200);
    const store = await PostgresEventStore.open({ url: env.DATABASE_URL ?? '' });
    try {
      const [last] = (await store.read(`client-${clientId}`)).slice(-1);
      if (last === undefined) throw new Error('the client has no events');
      const { type, data, metadata, revision } = last;
      const workspaceId = workspaceOf(metadata) ?? '';
      for (let from = 0; from < count; from += 500) {
        const events = Array.from({ length: Math.min(500, count - from) }, () => ({
          ...{ id: randomUUID(), type, data, metadata, workspaceId, partitionKey: clientId, topic: 'clients' },
        }));
        await store.append(`client-${clientId}`, revision + BigInt(from), events);
      }
    } finally {
      await store.close();
    }
  };

  t.before(async () => {
    const db = await testDatabase();
    env = { DATABASE_URL: db.url, SECRET_KEY: `v1:${randomBytes(32).toString('base64')}`, PORT: '0' };
    pool = new pg.Pool({ connectionString: db.url, max: 2 });
    [projections, api] = await Promise.all([
      start('projections/main.ts', { env }),
      start('services/api/main.ts', { env }),
    ]);
    await admin('workspace', 'create', '--name', 'Northwind');
    const { output } = await admin('key', 'create', '--mode', 'live', '--json');
    const secret = /sk_live_[\w-]+/.exec(output)?.[0] ?? '';
    owner = callerOf(() => api.url('/v1'), secret);
    await until('the key is known', async () => (await owner.get('/agency')).status === 200, sparing);
    for (let made = 0; made < 12; made += 1) await newClient();
    await numbered();
  });
  t.after(async () => {
    await Promise.all([api?.stop(), projections?.stop()]);
    await pool?.end();
  });

  const exported = async (name: string): Promise<string> => {
    const folder = path.join(scratch, name);
    const { code, output } = await admin('audit', 'export', '--to', folder);
    equal(code, 0, output);
    return folder;
  };
  /** As an auditor runs it on another machine: the file that came with the export. */
  const verified = (folder: string, ...flags: readonly string[]) => {
    const { status, stdout } = spawnSync(process.execPath, [path.join(folder, 'verify-export.mjs'), folder, ...flags], {
      encoding: 'utf8',
      env: {},
    });
    return { status, output: stdout };
  };

  t('an export is verified by the file that comes with it, and each change of it is named', async () => {
    const folder = await exported('whole');
    const whole = verified(folder);
    equal(whole.status, 0, whole.output);
    match(whole.output, /^postline\/[\w-]+: \d+ events, 0 of them expired/);
    const file = 'events.ndjson';
    const lines = readFileSync(path.join(folder, file), 'utf8').trim().split('\n');
    const seen = (name: string, change: (lines: string[]) => readonly string[]) => {
      const copy = path.join(scratch, name);
      cpSync(folder, copy, { recursive: true });
      writeFileSync(
        path.join(copy, file),
        change([...lines])
          .map((line) => `${line}\n`)
          .join(''),
      );
      const { status, output } = verified(copy);
      equal(status, 1, output);
      return output.split('\n').filter((line) => line.startsWith('WRONG'));
    };
    const parsed = (index: number) => JSON.parse(lines[index] ?? '') as { type: string; id: string; stream: string };
    const named = (index: number) => `${parsed(index).type} ${parsed(index).id} of ${parsed(index).stream}`;
    const edited = (line: string) => line.replace(/Client [0-9a-f]/, 'Client z');
    const place = lines.findIndex((line, index) => index > 4 && edited(line) !== line);
    ok(place > 0);
    const changed = seen('changed', (all) => all.with(place, edited(all[place] as string)));
    deepEqual(changed, [`WRONG  event ${place + 1} was changed: ${named(place)}`]);
    deepEqual(
      seen('removed', (all) => all.toSpliced(6, 1)),
      ['WRONG  event 7 is missing'],
    );
    deepEqual(
      seen('cut', (all) => all.slice(0, -1)),
      [`WRONG  event ${lines.length} is missing`],
    );
    const [moved] = seen('moved', (all) => all.toSpliced(6, 1).toSpliced(9, 0, all[6] as string));
    equal(moved, `WRONG  event 7 was moved behind event 10: ${named(6)}`);
    const hidden = JSON.stringify({ ...parsed(6), data: undefined, metadata: undefined, expired: true });
    deepEqual(
      seen('hidden', (all) => all.with(6, hidden)),
      [`WRONG  event 7 is not in the export, only its leaf: ${named(6)} is said to have expired`],
    );
    const kind = parsed(6).stream.replace(/-.*/, '');
    match(verified(path.join(scratch, 'hidden'), '--expired', `none,${kind}`).output, /1 of them expired(.*\n)+whole:/);
    const forged = JSON.stringify({ ...JSON.parse(lines[3] as string), id: randomUUID() });
    const [inserted] = seen('inserted', (all) => all.toSpliced(5, 0, forged));
    match(inserted ?? '', /^WRONG {2}an event that was never signed stands behind event 5: /);
    const [twice] = seen('twice', (all) => all.toSpliced(8, 0, all[2] as string));
    equal(twice, `WRONG  event 3 stands twice: ${named(2)}`);
  });

  t(
    'whoever changes leaves and root as well lacks the key, and a kept checkpoint shows what was taken away',
    async () => {
      const folder = await exported('kept');
      const key =
        (JSON.parse(readFileSync(path.join(folder, 'keys.json'), 'utf8')) as { keys: { verifier: string }[] }).keys[0]
          ?.verifier ?? '';
      equal(verified(folder, '--key', key).status, 0);
      const other = `postline+00000000+${Buffer.alloc(33, 1).toString('base64')}`;
      match(verified(folder, '--key', other).output, /checkpoint\.txt is not signed by the key/);
      const note = readFileSync(path.join(folder, 'checkpoint.txt'), 'utf8');
      const forged = path.join(scratch, 'forged');
      cpSync(folder, forged, { recursive: true });
      writeFileSync(path.join(forged, 'checkpoint.txt'), note.replace(/\n\d+\n/, '\n1\n'));
      match(verified(forged, '--key', key).output, /is not signed by the key/);
      await newClient();
      await numbered();
      const later = await exported('later');
      const keptFile = path.join(folder, 'checkpoint.txt');
      equal(verified(later, '--checkpoint', keptFile).status, 0);
      match(verified(folder, '--checkpoint', path.join(later, 'checkpoint.txt')).output, /the end is missing/);
    },
  );

  t('the installation is held against its own store and all that it signed', async () => {
    // Killed behind the first page, it goes on there and says of the whole what one says that was never stopped.
    await manyChanges(await newClient(), 1_100);
    await numbered();
    const state = path.join(scratch, 'killed.json');
    const dies = new Process('services/admin/main.ts', {
      env: { ...env, POSTLINE_FAULT: 'audit:verify-kept', POSTLINE_FAULT_SIGNAL: 'SIGKILL' },
      args: ['audit', 'verify', '--state', state],
    });
    equal((await dies.exited()).signal, 'SIGKILL', dies.output());
    const kept = JSON.parse(readFileSync(state, 'utf8')) as { sequence: number; size: number };
    ok(kept.sequence > 0 && kept.sequence < kept.size, JSON.stringify(kept));
    const resumed = await admin('audit', 'verify', '--state', state);
    equal(resumed.code, 0, resumed.output);
    match(resumed.output, new RegExp(`^going on behind event ${kept.sequence} of ${kept.size}`, 'm'));
    const { output, code } = await admin('audit', 'verify', '--state', path.join(scratch, 'verify.json'));
    equal(code, 0, output);
    const verdict = (text: string) => text.slice(text.indexOf('workspaceId'));
    match(verdict(output), /whole\s+true/);
    equal(verdict(resumed.output), verdict(output));
    const { rows } = await pool.query(
      "select id, data from es.events where stream like 'client-%' order by position limit 1 offset 3",
    );
    const [{ id }] = rows;
    await pool.query("update ops.feed_events set hash = sha256('x') where event_id = $1", [id]);
    const broken = await admin('audit', 'verify', '--state', path.join(scratch, 'verify.json'));
    equal(broken.code, 1);
    match(broken.output, new RegExp(`WRONG {2}event \\d+ \\(\\w+ ${id} of client-[\\w-]+\\) was changed`));
    match(broken.output, /are not those of the checkpoint that was signed/);
  });

  t('a stream is shown as of an instant, uses are listed, and a new key signs', async () => {
    const id = await newClient();
    const renamed = await owner.patch(`/clients/${id}`, { name: `Renamed ${randomUUID()}` });
    equal(renamed.status, 200, renamed.text);
    await numbered();
    const replayed = async (...args: readonly string[]) => {
      const { code, output } = await admin('audit', 'replay', ...args, '--json');
      equal(code, 0, output);
      const lines = output
        .trim()
        .split('\n')
        .filter((line) => line.startsWith('{'));
      const said = lines.map((line) => JSON.parse(line));
      deepEqual(said.pop(), { events: said.length });
      return said;
    };
    const all = await replayed(`client-${id}`);
    deepEqual(
      all.map(({ type }: { type: string }) => type),
      ['ClientCreated', 'ClientUpdated'],
    );
    const refusals = [
      ['2020-01-01T00:00:00Z', /lies before the first event of the workspace/],
      ['9.1', /names no epoch: the newest is 1/],
      ['soon', /is no instant/],
    ] as const;
    await Promise.all(
      refusals.map(async ([at, why]) => {
        const { code, output } = await admin('audit', 'replay', `client-${id}`, '--at', at);
        equal(code, 2, output);
        match(output, why);
      }),
    );
    const feed = await replayed('workspace');
    deepEqual(
      feed.map(({ sequence }: { sequence: number }) => sequence),
      feed.map((_: unknown, at: number) => at + 1),
    );
    const created = feed.find((one: { type: string; stream: string }) => one.stream === `client-${id}`);
    deepEqual(
      (await replayed(`client-${id}`, '--at', String(created.sequence))).map(({ type }: { type: string }) => type),
      ['ClientCreated'],
    );
    equal((await replayed('workspace', '--at', '1.3')).length, 3);
    const { rows: clock } = await pool.query('select at from ops.feed_events where sequence = $1', [created.sequence]);
    deepEqual(
      (await replayed(`client-${id}`, '--at', clock[0].at.toISOString())).map(({ type }: { type: string }) => type),
      ['ClientCreated'],
    );
    const following = new Process('services/admin/main.ts', {
      env,
      args: ['audit', 'replay', 'workspace', '--follow'],
    });
    await following.saying(/ClientUpdated/);
    const later = await newClient();
    await following.saying(new RegExp(`client-${later} 0 {2}ClientCreated`));
    following.signal('SIGINT');
    equal((await following.exited()).code, 0);
    match((await admin('audit', 'replay', 'client-none')).output, /There is no stream client-none/);
    equal((await owner.get('/events?limit=5')).status, 200);
    const [use] = await json('audit', 'reads');
    deepEqual([use.from, use.to, use.times], [1, 5, 1]);
    const [former] = await json('audit', 'keys');
    const [made, retired] = await json('audit', 'rotate-key');
    equal(retired.id, former.id);
    ok(retired.retiredAt !== null && made.retiredAt === null);
    match((await admin('audit', '--help')).output, /audit verify-export <folder>/);
  });

  t('diff: what is different between two moments, and the exit code that a script asks for', async () => {
    const id = await newClient();
    await numbered();
    const { rows } = await pool.query('select max(sequence)::int as n, clock_timestamp() as now from ops.feed_events');
    const [{ n: before, now }] = rows;
    const renamed = await owner.patch(`/clients/${id}`, { name: `Renamed ${randomUUID()}`, approvalRequired: true });
    equal(renamed.status, 200, renamed.text);
    const made = await newClient();
    await numbered();
    const after = (await pool.query('select max(sequence)::int as n from ops.feed_events')).rows[0].n;
    const found = await json('audit', 'diff', String(before), String(after));
    equal(found.moreThings, 0);
    const of = (stream: string) => found.differences.filter((one: { stream: string }) => one.stream === stream);
    deepEqual(
      of(`client-${id}`)
        .map(({ field, old }: { field: string; old: string }) => [field, old])
        .slice(1),
      [['/approval_required', 'false']],
    );
    deepEqual(
      of(`client-${made}`).map(({ what }: { what: string }) => what),
      ['made'],
    );
    deepEqual(await json('audit', 'diff', now.toISOString(), String(after)), {
      ...found,
      from: `${before} ${now.toISOString()}`,
    });
    const [same, other, back, none] = await Promise.all([
      admin('audit', 'diff', String(before), String(before), '--exit-code'),
      admin('audit', 'diff', String(before), String(after), '--exit-code', '--limit', '1'),
      admin('audit', 'diff', String(after), String(before)),
      admin('audit', 'diff', '1', '99999999'),
    ]);
    deepEqual([same.code, other.code, back.code, none.code], [0, 1, 2, 2], other.output + back.output);
    match(other.output, /moreThings +[1-9]/);
  });

  t('the end of a day is signed without being asked for, also by the process behind one that dies', async () => {
    await projections.stop();
    await pool.query('delete from ops.feed_checkpoints');
    await pool.query('delete from ops.feed_keys');
    await pool.query("update ops.feed_events set at = at - interval '2 days' where sequence <= 5");
    const dies = await start('projections/main.ts', {
      env: { ...env, POSTLINE_FAULT: 'checkpoint:after-key', POSTLINE_FAULT_SIGNAL: 'SIGKILL' },
    });
    equal((await dies.exited()).signal, 'SIGKILL');
    projections = await start('projections/main.ts', { env });
    const { rows: made } = await pool.query('select id from ops.feed_keys');
    const signed = 'select 1 from ops.feed_checkpoints where size = 5';
    await until('the day is signed', async () => (await pool.query(signed)).rowCount !== 0);
    const keys = await pool.query('select id from ops.feed_keys');
    deepEqual([keys.rows, made.length], [made, 1]);
    const { data } = (await owner.get('/events/checkpoints')).body as { data: { size: number }[] };
    ok(data.some(({ size }) => size === 5));
  });
});
