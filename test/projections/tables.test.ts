import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { migrate, nextGeneration } from '#projections/engine/tables.ts';
import { projectionOf, projections } from '#projections/index.ts';
import { shapeOf, view, viewOf } from '#projections/shapes.ts';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { type ProjectionWorld, projectionWorld } from '#test/support/projection-world.ts';
import { suite } from '#test/support/suite.ts';

suite('tables of read models', (t) => {
  let world: ProjectionWorld;
  t.before(async () => {
    world = await projectionWorld();
  });
  t.after(() => world?.close());

  const tables = async (): Promise<readonly string[]> =>
    (
      await world.pool.query(
        `select relname as name from pg_class where relnamespace = 'read'::regnamespace order by 1`,
      )
    ).rows.map(({ name }) => name);

  t('each model has the view of its projection’s shape', () => {
    for (const { shape, models } of projections)
      for (const { name } of models) assert.equal(view(name), viewOf(name, shape), name);
  });

  t('each query takes the view of a model that there is, under an alias: its name changes with its shape', () => {
    const folder = path.join(import.meta.dirname, '../../projections');
    const models = projections.flatMap((one) => one.models.map(({ name }) => name));
    const keyword = /^(where|order|left|cross|join|limit|on|group|union|for|offset)$/;
    const odd = globSync('{models,queries,webhooks}/**/*.ts', { cwd: folder }).flatMap((file) => {
      const text = readFileSync(path.join(folder, file), 'utf8');
      const unknown = [...text.matchAll(/\bview\('(\w+)'\)/g)].filter(([, name = '']) => !models.includes(name));
      const bare = [...text.matchAll(/\$\{view(?:\('\w+'\))?\}(?: (?:as )?(\w*))?/g)].filter(
        ([, alias = '']) => alias === '' || keyword.test(alias),
      );
      return [...unknown, ...bare].map(([found]) => `${file}: ${found}`);
    });
    assert.deepEqual(odd, []);
  });

  t('an empty database gets all tables, indexes and views once, also when three processes start at once', async () => {
    const before = await tables();
    await world.pool.query('drop schema read cascade; create schema read; delete from ops.projections');
    await Promise.all([1, 2, 3].map(() => migrate(world.pool)));
    assert.deepEqual(await tables(), before);
    for (const name of [
      'posts_v1_6',
      'post_targets_v1_1',
      'clients_v1_1',
      'grants_v1',
      view('posts').replace('read.', ''),
    ])
      assert.ok(before.includes(name));
  });

  t('a start names the projections whose shape is not there, and changes no tables', async () => {
    const before = await tables();
    await world.pool.query(`update ops.projections set shape = 99 where name = 'posts'`);
    const missing = await migrate(world.pool);
    assert.deepEqual(missing, [projectionOf('posts')]);
    assert.deepEqual(await tables(), before);
    await world.pool.query(`update ops.projections set shape = $1 where name = 'posts'`, [shapeOf('posts')]);
    assert.deepEqual(await migrate(world.pool), []);
  });

  t('a start waits for no writer and no reader', async () => {
    const writer = await world.pool.connect();
    try {
      await writer.query('begin');
      await writer.query('lock table read.posts_v1, read.post_targets_v1 in access exclusive mode');
      await migrate(world.pool);
    } finally {
      await writer.query('rollback');
      writer.release();
    }
  });

  t(
    'the next generation drops tables that crashed rebuilds left, and keeps those that are shown or announced',
    async () => {
      const posts = projectionOf('posts');
      const next = async (): Promise<number> => {
        let generation = 0;
        await withMigrationLock(world.pool, async (tx) => {
          generation = await nextGeneration(tx, posts);
        });
        return generation;
      };
      const generations = async (): Promise<readonly string[]> =>
        (await tables()).filter((name) => /^(posts|post_targets)_v\d+$/.test(name));
      const [first, second] = [await next(), await next()];
      assert.deepEqual([first, second], [2, 3]);
      assert.deepEqual(await generations(), ['post_targets_v1', 'post_targets_v3', 'posts_v1', 'posts_v3']);
      await world.pool.query(
        `insert into ops.projection_readers (instance, name, generation, until)
       values (gen_random_uuid(), 'posts', $1, now() + interval '1 minute')`,
        [second],
      );
      await next();
      assert.deepEqual(await generations(), [
        ...['post_targets_v1', 'post_targets_v3', 'post_targets_v4', 'posts_v1', 'posts_v3', 'posts_v4'],
      ]);
    },
  );
});
