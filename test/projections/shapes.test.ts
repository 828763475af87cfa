/**
 * A build whose read models have another shape takes over beside the former one: it makes its tables while that goes on,
 * both are written, and a shape goes when no process reads it any more.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import path from 'node:path';
import { projectUnannounced } from '#projections/engine/project.ts';
import { makeShape, withRebuildLock } from '#projections/engine/rebuild.ts';
import { runProjections } from '#projections/engine/run.ts';
import { useReadModels } from '#projections/engine/use.ts';
import { built } from '#test/support/bundles.ts';
import { compareWithReplay } from '#test/support/compare-with-replay.ts';
import { type ProjectionWorld, projectionWorld } from '#test/support/projection-world.ts';
import { campaignFields } from '#test/support/samples.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { withMembers } from '#test/support/with-members.ts';
import { type Build, builds, dropAfterMs } from './shape-builds.ts';

const program = built(path.join(import.meta.dirname, 'shape-process.ts'));
const views: Readonly<Record<Build, string>> = { former: 'read.campaigns', newer: 'read.campaigns_s2' };

/** A database with events and tables of the former build, none of whose processes runs. */
const installation = async () => {
  const world = await projectionWorld();
  afterFile(() => world.close());
  return { world, ...actsIn(world) };
};

/** Until projections announce that they write this generation. */
const untilFollowed = ({ pool }: ProjectionWorld, generation: number) =>
  until(`generation ${generation} is followed`, async () => {
    const { rows } = await pool.query('select from ops.projection_readers where generation = $1', [generation]);
    return rows.length > 0;
  });

const actsIn = (world: ProjectionWorld) => {
  const { pool } = world;
  const write = async (name: string): Promise<void> => {
    const stream = `campaign-${randomUUID()}`;
    await world.append([{ stream, type: 'CampaignCreated', data: { clientId: null, ...campaignFields, name } }]);
  };
  const shows = async (build: Build): Promise<readonly string[]> => {
    const column = build === 'former' ? 'name' : 'shout';
    const { rows } = await pool.query<{ shown: string }>(
      `select lower(${column}) as shown from ${views[build]} order by created_at, id`,
    );
    return rows.map(({ shown }) => shown).sort();
  };
  const untilShown = (build: Build, ...names: readonly string[]) =>
    until(`${build} shows ${names.join(', ')}`, async () => {
      const shown = await shows(build).catch((): readonly string[] => []);
      return names.every((name) => shown.includes(name));
    });
  const has = async (build: Build): Promise<boolean> => {
    const { rows } = await pool.query('select to_regclass($1) as view', [views[build]]);
    return rows[0].view !== null;
  };
  const tables = async (): Promise<readonly string[]> =>
    (
      await pool.query<{ name: string }>(
        `select relname as name from pg_class where relnamespace = 'read'::regnamespace and relname ~ '^campaigns_v[0-9]+$' order by 1`,
      )
    ).rows.map(({ name }) => name);
  const start = (build: Build) => {
    const stop = new AbortController();
    const running = runProjections({ ...world, names: [], of: builds[build], dropAfterMs, signal: stop.signal });
    const end = async (): Promise<void> => {
      stop.abort();
      await running.done;
    };
    afterFile(end);
    return { ...running, end };
  };
  /** In a process of its own, which can be killed. */
  const run = async (build: Build) => {
    const child = spawn(process.execPath, [program, world.url, build], { stdio: ['ignore', 'inherit', 'inherit'] });
    afterFile(() => void child.kill('SIGKILL'));
    const end = async (by: NodeJS.Signals): Promise<void> => {
      child.kill(by);
      await once(child, 'exit');
    };
    await untilFollowed(world, 1);
    return { end };
  };
  const lines: string[] = [];
  let looked = 0;
  /** A reader that announces itself and leaves all else to projections, as that of an older build does. */
  const read = async (build: Build) => {
    const instance = randomUUID();
    await pool.query(
      `insert into ops.shape_readers (instance, shapes, until) values ($1, $2, now() + interval '1 hour')`,
      [instance, Object.fromEntries(builds[build].map(({ name, shape }) => [name, shape]))],
    );
    return { end: () => pool.query('delete from ops.shape_readers where instance = $1', [instance]) };
  };
  /** What processes that read said of the shapes that they write, and how often they looked who does. */
  const said = () => lines.filter((line) => line.includes('write this shape'));
  const looks = () => looked;
  const use = async (build: Build, standBackMs = 0) => {
    const stop = new AbortController();
    const pool = withMembers(world.pool, {
      query: ((...args: Parameters<typeof world.pool.query>) => {
        const [{ name = '' }] = args as unknown as readonly [{ readonly name?: string }];
        if (name === 'shapes-followed') looked += 1;
        return world.pool.query(...args);
      }) as typeof world.pool.query,
    });
    const info = (_of: object, line: string): unknown => lines.push(line);
    const logger = withMembers(world.logger, { info: info as typeof world.logger.info });
    const options = { ...world, pool, logger, of: builds[build], standBackMs, signal: stop.signal };
    const used = await useReadModels(options);
    afterFile(() => used.stop());
    return used;
  };
  /** Ends announcements of processes that died. */
  const forget = () => pool.query('delete from ops.projection_readers; delete from ops.shape_readers');
  const dies = async (build: Build, point: string): Promise<void> => {
    const env = { ...process.env, POSTLINE_FAULT: point };
    const child = spawn(process.execPath, [program, world.url, build], {
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    afterFile(() => void child.kill('SIGKILL'));
    const [, signal] = await once(child, 'exit');
    assert.equal(signal, 'SIGKILL', `it dies at ${point}`);
    await forget();
  };
  const agrees = async (build: Build): Promise<void> =>
    assert.deepEqual((await compareWithReplay({ ...world, only: builds[build] })).differences, []);
  return { write, shows, untilShown, has, tables, start, run, read, use, said, looks, forget, dies, agrees };
};

suite('two shapes of a read model', { waits: true, timeoutMs: 180_000 }, (t) => {
  t(
    'a new shape is made beside the former one, both are written, and the former goes with its last reader',
    async () => {
      const { world, write, shows, untilShown, has, tables, start, use, agrees } = await installation();
      const former = start('former');
      await write('one');
      await untilShown('former', 'one');
      // Readers of the former build go on while the new one makes its tables, and see what is written meanwhile.
      const reading = new AbortController();
      const reader = (async () => {
        for (let n = 0; !reading.signal.aborted; n += 1) {
          await write(`meanwhile ${n}`);
          await untilShown('former', `meanwhile ${n}`);
          await shows('former');
        }
        return true;
      })();
      const newer = start('newer');
      await untilShown('newer', 'one');
      await write('two');
      await Promise.all([untilShown('former', 'two'), untilShown('newer', 'two')]);
      reading.abort();
      assert.equal(await reader, true);
      assert.equal(await newer.check(), null);
      assert.equal(await former.check(), null);

      // An api of the former build is left: the tables stay although no projections of its build run.
      const api = await use('former');
      await former.end();
      await new Promise((resolve) => setTimeout(resolve, 2 * dropAfterMs));
      assert.equal(await has('former'), true);
      await api.stop();
      await until('the former shape is gone', async () => !(await has('former')));
      assert.deepEqual(await tables(), ['campaigns_v2']);
      await write('three');
      await untilShown('newer', 'two', 'three');
      await newer.end();
      await agrees('newer');
      assert.deepEqual((await world.pool.query('select count(*)::int as n from ops.shape_readers')).rows, [{ n: 0 }]);
    },
  );

  t('a build that is taken back finds its tables, or makes them again once they were dropped', async () => {
    const { world, write, untilShown, has, tables, start, agrees } = await installation();
    const former = start('former');
    await write('one');
    await untilShown('former', 'one');
    const newer = start('newer');
    await untilShown('newer', 'one');
    await former.end();
    await write('between');
    const back = start('former');
    await untilShown('former', 'one', 'between');
    assert.deepEqual(await tables(), ['campaigns_v1', 'campaigns_v2']);
    await back.end();
    await until('the former shape is gone', async () => !(await has('former')));
    const again = start('former');
    await untilShown('former', 'one', 'between');
    await write('both');
    await Promise.all([untilShown('former', 'both'), untilShown('newer', 'both')]);
    assert.deepEqual(await tables(), ['campaigns_v2', 'campaigns_v3']);
    await newer.end();
    // The announcement of the switch would lapse by itself.
    await world.pool.query('delete from ops.projection_readers where generation = 2');
    await until('the newer shape is gone', async () => !(await has('newer')));
    await again.end();
    await agrees('former');
  });

  for (const leaves of ['with a goodbye', 'killed'] as const) {
    t(`readers of the former shape see new rows when the last projections of their build leave ${leaves}`, async () => {
      const { world, write, untilShown, has, start, run, read, agrees } = await installation();
      const former = await run('former');
      const api = await read('former');
      await write('one');
      await untilShown('former', 'one');
      const [first, second] = [start('newer'), start('newer')];
      await until('both project', () => [first, second].every((one) => one.status()[0]?.generation === 2));
      // It leaves in the middle of what is written.
      const names = Array.from({ length: 60 }, (_, n) => `meanwhile ${n}`);
      const written = (async () => {
        for (const name of names) await write(name);
      })();
      await untilShown('former', 'meanwhile 5');
      await former.end(leaves === 'killed' ? 'SIGKILL' : 'SIGTERM');
      await written;
      await untilShown('former', ...names);
      await agrees('former');
      // One of the newer leaves, too.
      await first.end();
      await write('late');
      await untilShown('former', 'late');
      assert.equal(await second.check(), null);
      assert.deepEqual(
        second.consumers().map(({ group }) => group),
        ['projection-campaigns-v2', 'projection-campaigns-v1'],
      );
      await api.end();
      await until('the former shape is gone', async () => !(await has('former')));
      await write('alone');
      await untilShown('newer', 'alone', 'late', ...names);
      assert.equal(await second.check(), null);
      await until('nobody writes the former shape', () => second.consumers().length === 1);
      await second.end();
      await agrees('newer');
      assert.deepEqual(
        (await world.pool.query('select name from ops.projection_readers where name ~ $1', ['former'])).rows,
        [],
      );
    });
  }

  t('readers of the newer shape see new rows when only projections of the former build are left', async () => {
    const { write, untilShown, start, use, agrees, world, said } = await installation();
    const former = start('former');
    const newer = start('newer');
    await untilFollowed(world, 2);
    const api = await use('newer');
    await newer.end();
    await write('one');
    await Promise.all([untilShown('former', 'one'), untilShown('newer', 'one')]);
    assert.deepEqual(said(), ['no projections write this shape: this process does']);
    const again = start('newer');
    await write('two');
    await Promise.all([untilShown('former', 'two'), untilShown('newer', 'two')]);
    await until('the api leaves it to them', () => said().length > 1);
    assert.deepEqual(said().slice(1), ['projections write this shape again']);
    await write('three');
    await untilShown('newer', 'three');
    await api.stop();
    await again.end();
    await former.end();
    await agrees('former');
    await agrees('newer');
  });

  t('the former shape is written while the newer one is still being made', async () => {
    const { world, write, untilShown, has, start, read } = await installation();
    const former = start('former');
    const api = await read('former');
    await write('one');
    await untilShown('former', 'one');
    await withRebuildLock(world.pool, 'campaigns', AbortSignal.timeout(120_000), async () => {
      const newer = start('newer');
      await until('the newer one waits', () => newer.status()[0]?.reason?.includes('are being made'));
      await former.end();
      await write('two');
      await untilShown('former', 'two');
      assert.equal(await has('newer'), false);
      await newer.end();
    });
    await api.end();
  });

  t('a consumer that announces nothing passes events once its tables were dropped', async () => {
    const { world, write, has, start } = await installation();
    const newer = start('newer');
    await until('the former shape is gone', async () => !(await has('former')));
    await newer.end();
    const over = new AbortController();
    const consumer = projectUnannounced(builds.former[0], 1, { ...world, signal: over.signal });
    await write('one');
    const head = await world.store.head();
    await until('it has passed the event, or stopped', async () => {
      if ([...consumer.status().values()].some(({ state }) => state !== 'running')) return true;
      const { rows } = await world.pool.query(
        `select position from ops.consumer_positions where consumer_group = 'projection-campaigns-v1'`,
      );
      return BigInt(rows[0]?.position ?? -1) === head;
    });
    assert.deepEqual(
      [...consumer.status().values()].map(({ state, reason }) => ({ state, reason })),
      [{ state: 'running', reason: null }],
    );
    over.abort();
    await consumer.done;
  });

  t('a reader of the former shape leaves it to newer projections that write it', async () => {
    const { write, untilShown, start, use, world, said, looks } = await installation();
    const former = start('former');
    const newer = start('newer');
    await untilFollowed(world, 2);
    const api = await use('former');
    await former.end();
    const before = looks();
    await write('one');
    await Promise.all([untilShown('former', 'one'), untilShown('newer', 'one')]);
    await until('the reader has looked who writes', () => looks() > before + 1);
    assert.deepEqual(said(), []);
    // Alone it writes it.
    await newer.end();
    await write('two');
    await untilShown('former', 'two');
    assert.deepEqual(said(), ['no projections write this shape: this process does']);
    await api.stop();
  });

  t('tables that the former build makes anew are written by the newer one, too', async () => {
    const { write, untilShown, has, start, use } = await installation();
    await write('one');
    const newer = start('newer');
    await until('the former shape is gone', async () => !(await has('former')));
    await untilShown('newer', 'one');
    const back = start('former');
    const api = await use('former', 30_000);
    await back.end();
    await write('two');
    await untilShown('former', 'one', 'two');
    assert.equal(await newer.check(), null);
    await api.stop();
    await newer.end();
  });

  t('of several processes that need a shape at once one makes it', async () => {
    const { world, write, untilShown, tables, start, use } = await installation();
    await write('one');
    const [first, second] = [start('newer'), start('newer')];
    const api = await use('newer');
    await untilShown('newer', 'one');
    await until('both project', () => [first, second].every((one) => one.status()[0]?.generation === 2));
    const { rows } = await world.pool.query(
      `select max(newest) as newest from ops.projections where name = 'campaigns'`,
    );
    assert.deepEqual(rows, [{ newest: 2 }]);
    await api.stop();
    await first.end();
    await second.end();
    assert.ok((await tables()).includes('campaigns_v2'));
  });

  t('an api that starts before the projections of its build makes the shape, and keeps it fresh for them', async () => {
    const { write, untilShown, start, use } = await installation();
    await write('one');
    const api = await use('newer');
    await untilShown('newer', 'one');
    await write('two');
    await untilShown('newer', 'two');
    const newer = start('newer');
    await write('three');
    await untilShown('newer', 'three');
    await api.stop();
    await write('four');
    await untilShown('newer', 'four');
    await newer.end();
  });

  t('an api waits for the projections of its build that make the shape', async () => {
    const { write, shows, start, use } = await installation();
    await write('one');
    const newer = start('newer');
    const api = await use('newer', 30_000);
    assert.deepEqual(await shows('newer'), ['one']);
    await api.stop();
    await newer.end();
  });

  t('a process that announces itself while its shape is being dropped finds it gone, and makes it', async () => {
    const { world, write, untilShown, use } = await installation();
    await write('one');
    const dropping = await world.pool.connect();
    await dropping.query('begin');
    await dropping.query(`select from ops.projections where name = 'campaigns' for update`);
    const using = use('former');
    await until('it waits for the row', async () => {
      const { rows } = await world.pool.query('select 1 from pg_locks where not granted');
      return rows.length > 0;
    });
    await dropping.query(`update ops.projections set live = null where name = 'campaigns';
      drop view read.campaigns; drop table read.campaigns_v1`);
    await dropping.query('commit');
    dropping.release();
    const api = await using;
    await untilShown('former', 'one');
    await api.stop();
  });

  for (const point of ['rebuild:before-consume', 'rebuild:before-switch'] as const) {
    t(`a process that dies at ${point} leaves the former shape alone, and the next one begins anew`, async () => {
      const { write, shows, untilShown, has, tables, start, dies, agrees } = await installation();
      const former = start('former');
      await write('one');
      await untilShown('former', 'one');
      await dies('newer', point);
      assert.equal(await has('newer'), false);
      assert.deepEqual(await tables(), ['campaigns_v1', 'campaigns_v2']);
      await write('two');
      await untilShown('former', 'two');
      const newer = start('newer');
      await untilShown('newer', 'one', 'two');
      assert.deepEqual(await tables(), ['campaigns_v1', 'campaigns_v3']);
      assert.deepEqual(await shows('former'), await shows('newer'));
      await newer.end();
      await former.end();
      await agrees('newer');
    });
  }

  t('a process that dies behind the switch leaves a shape that the next one continues', async () => {
    const { write, untilShown, has, tables, start, dies } = await installation();
    await write('one');
    await dies('newer', 'shape:after-switch');
    assert.equal(await has('newer'), true);
    await write('two');
    const newer = start('newer');
    await untilShown('newer', 'one', 'two');
    assert.ok((await tables()).includes('campaigns_v2'));
    await newer.end();
  });

  t('a process that dies while it drops a shape has dropped nothing, and the next one drops it', async () => {
    const { world, write, untilShown, has, tables, start, dies, shows } = await installation();
    const former = start('former');
    await write('one');
    await untilShown('former', 'one');
    await former.end();
    const made = await makeShape({ ...world, signal: AbortSignal.timeout(60_000) }, builds.newer[0]);
    await made?.();
    await dies('newer', 'shape:before-drop');
    assert.deepEqual(await shows('former'), ['one']);
    const newer = start('newer');
    await until('the former shape is gone', async () => !(await has('former')));
    assert.deepEqual(await tables(), ['campaigns_v2']);
    await newer.end();
  });
});
