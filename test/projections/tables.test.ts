import assert from 'node:assert/strict';
import { migrate } from '#projections/engine/tables.ts';
import { projections } from '#projections/index.ts';
import { type ProjectionWorld, projectionWorld } from '#test/support/projection-world.ts';
import { suite } from '#test/support/suite.ts';

suite('tables of read models', (t) => {
  let world: ProjectionWorld;
  t.before(async () => {
    world = await projectionWorld();
  });
  t.after(() => world?.close());

  const indexes = async (): Promise<readonly { indexname: string; indexdef: string }[]> =>
    (await world.pool.query(`select indexname, indexdef from pg_indexes where schemaname = 'read' order by 1`)).rows;
  const drop = async (name: string) => world.pool.query(`drop index read.${name}`);
  const current = projections.find(({ name }) => name === 'posts')?.shape ?? 0;
  const shape = (value: number) =>
    world.pool.query(`update ops.projections set shape = $1 where name = 'posts'`, [value]);

  t('a live table gets its missing indexes, also when three processes start at once', async () => {
    const before = await indexes();
    for (const name of ['posts_v1_6', 'post_targets_v1_1', 'clients_v1_1']) await drop(name);
    await Promise.all([1, 2, 3].map(() => migrate(world.pool)));
    assert.deepEqual(await indexes(), before);
  });

  t('a live table gets a column that another build has not, with null on its rows', async () => {
    await world.pool.query('drop view read.api_keys; alter table read.api_keys_v1 drop column client_ids');
    await world.pool.query('create view read.api_keys as select * from read.api_keys_v1 where revision >= 0');
    await world.pool.query(`insert into read.api_keys_v1 (id, workspace_id, revision) select id, id, 0
      from gen_random_uuid() as id`);
    await Promise.all([1, 2, 3].map(() => migrate(world.pool)));
    const { rows } = await world.pool.query('select client_ids from read.api_keys');
    assert.deepEqual(rows, [{ client_ids: null }]);
  });

  t('a live table of another build gets its missing columns, and its view shows them', async () => {
    await world.pool.query(`
      drop view read.posts;
      alter table read.posts_v1 drop column body_revision, drop column earlier, drop column searched;
      create view read.posts as select * from read.posts_v1 where revision >= 0`);
    await Promise.all([1, 2, 3].map(() => migrate(world.pool)));
    await world.pool.query('select body_revision, earlier, searched from read.posts');
    assert.ok((await indexes()).some(({ indexdef }) => indexdef.includes('earlier')));
  });

  t('a live projection gets the table of a model that another build has not, once', async () => {
    const before = await indexes();
    await world.pool.query('drop view read.grants; drop table read.grants_v1');
    await Promise.all([1, 2, 3].map(() => migrate(world.pool)));
    assert.deepEqual((await world.pool.query('select * from read.grants')).rows, []);
    assert.deepEqual(await indexes(), before);
  });

  t('a table of another shape is not changed', async () => {
    await drop('posts_v1_6');
    await shape(99);
    await migrate(world.pool);
    assert.ok((await indexes()).every(({ indexname }) => indexname !== 'posts_v1_6'));
    await shape(current);
    await migrate(world.pool);
    assert.ok((await indexes()).some(({ indexname }) => indexname === 'posts_v1_6'));
  });

  t('without a missing index it does not wait for writers; with one, readers do not wait for it', async () => {
    const writer = await world.pool.connect();
    try {
      await writer.query('begin');
      await writer.query('lock table read.posts_v1, read.post_targets_v1 in row exclusive mode');
      await migrate(world.pool);
      await writer.query('drop index read.posts_v1_6');
      await writer.query('commit');
      await writer.query('begin');
      await writer.query('select count(*) from read.posts');
      await migrate(world.pool);
      await writer.query('commit');
    } finally {
      writer.release();
    }
  });
});
