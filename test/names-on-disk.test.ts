/**
 * What lives outside of the code, by value: events and tables of running installations, groups and leases of processes of
 * another release, keys that are derived anew, settings and figures that operators have written down. A change here
 * is a new version, or a migration, and never a rename: a renamed consumer group starts
 * from zero, and one that is never replayed would tell everything again.
 */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { checksumOf } from '#contracts/base/numbered-files.ts';
import {
  accountIdOf,
  causedIdOf,
  clientNameIdOf,
  deliveryIdOf,
  envelopeIdOf,
  externalRefIdOf,
  keyedIdOf,
  nextKeyedIdOf,
  quotaIdOf,
  recycledPostIdOf,
  targetIdOf,
  testTwinIdOf,
} from '#domain/ids.ts';
import { eventSchema } from '#infra/postgres/event-store.ts';
import { packingVersion } from '#infra/postgres/packing/form.ts';
import { words } from '#infra/postgres/packing/words.ts';
import { operationalSchema } from '#infra/postgres/schema.ts';
import { tableFiles, tableNames } from '#projections/analytics/tables.ts';
import { createTable } from '#projections/engine/tables.ts';
import { projections } from '#projections/index.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { configHelp } from '#runtime/process/config.ts';
import { EventMetadata } from '#schemas/common.ts';
import { eventCatalogue, topicOf } from '#schemas/events.ts';
import { topics } from '#schemas/topics.ts';
import { blobKey as mediaKey } from '#services/media/names.ts';
import { blobKey as reportKey } from '#services/reports/make.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { openTables } from '#test/support/tables.ts';
import { events, sharedShapes } from './names-on-disk/events.ts';
import * as names from './names-on-disk/names.ts';
import { count, found } from './names-on-disk/scan.ts';
import { membersOf } from './names-on-disk/shape.ts';
import * as stored from './names-on-disk/tables.ts';

const key = `v1:${Buffer.alloc(32, 7).toString('base64')}`;
const [one, two] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];

suite('names on disk', (t) => {
  t('events, their versions and members', () => {
    const known = new Map(Object.entries(sharedShapes).map(([name, shape]) => [shape, name]));
    const now = Object.fromEntries(
      Object.entries(eventCatalogue).map(([kind, definitions]) => [
        kind,
        Object.fromEntries(
          Object.entries(definitions).map(([type, { version, schema }]) => [
            type,
            `${version}: ${membersOf(schema, known)}`.trim(),
          ]),
        ),
      ]),
    );
    assert.deepEqual(now, events);
    assert.equal(membersOf(EventMetadata), names.metadata);
  });

  // Weeks of webhook deliveries are partitions, named `…_w<week>`.
  t('tables, columns and sequences in Postgres', async () => {
    const { pool, close } = await openTables((await testDatabase()).url);
    try {
      const columns = await pool.query<{ name: string; columns: string }>(
        `select c.table_schema || '.' || c.table_name as name,
                string_agg(c.column_name, ' ' order by c.ordinal_position) as columns
         from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
         where c.table_schema in ('auth', 'es', 'ops', 'sandbox') and t.table_type = 'BASE TABLE' and t.table_name !~ '_w[0-9]+$'
         group by 1 order by 1`,
      );
      const now = Object.fromEntries(columns.rows.map((row) => [row.name, row.columns]));
      assert.deepEqual(now, stored.tables);
      const sequences = await pool.query<{ name: string }>(
        `select schemaname || '.' || sequencename as name from pg_sequences order by 1`,
      );
      assert.deepEqual(
        sequences.rows.map(({ name }) => name),
        stored.sequences,
      );
      const schemas = await pool.query<{ name: string }>(
        `select distinct table_schema::text as name from information_schema.tables
         where table_schema not in ('pg_catalog', 'information_schema') order by 1`,
      );
      assert.deepEqual(
        schemas.rows.map(({ name }) => name),
        stored.schemas,
      );
    } finally {
      await close();
    }
    const made = found(/create (?:unlogged )?table (?:if not exists )?((?:auth|ops|sandbox)\.[a-z]\w*)/g);
    assert.deepEqual(
      made.filter((name) => stored.tables[name] === undefined),
      [],
      'made by no numbered file',
    );
  });

  // A file that a release brought never changes: databases refuse another one.
  t('numbered files of tables', () => {
    const inClickHouse = { schema: 'clickhouse', files: tableFiles(1) };
    const now = [operationalSchema(), eventSchema('es'), inClickHouse].flatMap(({ schema, files }) =>
      files.map((file) => `${schema} ${file.name} ${checksumOf(file).slice(0, 16)}`),
    );
    assert.deepEqual(now, stored.schemaFiles);
  });

  t('the words of packed events', () => {
    const digest = hash('sha256', JSON.stringify(words));
    assert.deepEqual([packingVersion, words.length, digest], [1, ...names.packingWords]);
  });

  t('read models and tables in ClickHouse', () => {
    const models = projections.flatMap(({ name, models }) =>
      models.map((model) => `${name}: read.${model.name} of ${model.kind}`),
    );
    assert.deepEqual(models, stored.readModels);
    const shapes = projections.map(({ name, shape, models: made }) => {
      const digest = hash('sha256', made.map((model) => createTable(model, 1)).join('\n'));
      return `${name} ${shape} ${digest.slice(0, 16)}`;
    });
    assert.deepEqual(shapes, stored.readShapes);
    assert.deepEqual(tableNames, stored.clickhouseTables);
  });

  t('topics, and which stream kind travels on which', () => {
    assert.deepEqual(topics, names.topics);
    const now = Object.fromEntries(Object.keys(eventCatalogue).map((kind) => [kind, topicOf(`${kind}-1`)]));
    assert.deepEqual(now, names.topicOfKind);
  });

  t('consumer groups', () => {
    const now = found(
      /\b\w*Group(?:: \w+)? = '([^']+)'/g,
      /\bgroup: '([^']+)'/g,
      /groupOf = [^=]*=> `([^`]+)`/g,
      /consumer_group = ('[^$]*?)`/g,
    );
    assert.deepEqual(now, names.consumerGroups);
  });

  t('lease kinds', () => {
    const now = found(/\bleaseKind\w*(?: =|:) '([^']+)'/g, /new Leases\(\{[^}]*?\bkind: '([^']+)'/g);
    assert.deepEqual(now, names.leaseKinds);
  });

  t('notify channels', () => {
    const channels = found(/pg_notify\('([^']+)'/g, /\blisten ([^`'"\s]+)[`'"]/g, /channelOf = [^=]*=> `([^`]+)`/g);
    assert.deepEqual(channels, names.notifyChannels);
  });

  t('keys of advisory locks', () => {
    const calls = found(/(pg_(?:try_)?advisory\w*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))/g);
    assert.deepEqual(calls, names.advisoryCalls);
    const numbers = found(/\w*[lL]ock(?:Key|Class)?\b(?:: \w+)? = ([\d_]{5,});/g);
    const texts = found(
      /(?:withTableLock|runInOneProcess|acquireLease)\((?:[^,;]+, |\{[^;]*?\bname: )['`]([^'`]+)['`]/g,
      /\block: ['`]([^'`]+)['`]/g,
      /pg_try_advisory_lock\(hashtextextended\(\$1, 0\)\) as ok', \[\s*`([^`]+)`/g,
      /\bwithRebuildLock\([\w.]+, '([^']+)'/g,
    );
    assert.deepEqual([...numbers.map((number) => number.replaceAll('_', '')), ...texts], names.advisoryKeys);
  });

  t('purposes of derived keys, and the keys themselves', () => {
    const secrets = new Secrets(key);
    const purposes = found(/type Purpose =([^;]+);/g)[0]?.match(/[\w-]+/g) ?? [];
    const now = Object.fromEntries(
      purposes.map((purpose) => [
        purpose,
        secrets
          .subKey(purpose as 'secrets')
          .toString('hex')
          .slice(0, 16),
      ]),
    );
    assert.deepEqual(now, names.derivedKeys);
    const used = found(/\.(?:seal|open|mac|subKey)\('([^']+)'/g).filter(
      (purpose) => names.derivedKeys[purpose] === undefined,
    );
    assert.deepEqual(used, []);
    const texts = found(/\bupdate\(`([^`$]*(?:\\n|key check|engine)[^`]*)`/g, /\bmac\('\w+', `([^`]+)`/g);
    assert.deepEqual(texts, names.signedTexts);
  });

  t('keys of blobs', () => {
    assert.equal(mediaKey(one, two, 'original', '0123456789abcdef', 'image/png'), names.blobKeys.media);
    assert.equal(reportKey(one, two, 'csv', '0123456789abcdef0123'), names.blobKeys.report);
    assert.deepEqual(found(/`(\$\{workspaceId\}\/[^`]*)`/g), names.blobKeyForms);
  });

  t('ids that are derived from others', () => {
    const now = {
      target: targetIdOf(one, two, 3),
      recycled: recycledPostIdOf(one, 3),
      account: accountIdOf(one, 'bluesky', 'did:plc:1'),
      keyed: keyedIdOf(one, 'createPost', 'key'),
      nextKeyed: nextKeyedIdOf(one, 'createPost', 'key', 1),
      clientName: clientNameIdOf(one, ' Acme '),
      externalRef: externalRefIdOf(one, two, ' CMS-1 '),
      quota: quotaIdOf(one, '2026-11'),
      testTwin: testTwinIdOf(one),
      caused: causedIdOf(one, `post-${two}`),
      envelope: envelopeIdOf(one, 'post.published'),
      delivery: deliveryIdOf(one, two),
      replayedDelivery: deliveryIdOf(one, two, one),
    };
    assert.deepEqual(now, names.derivedIds);
  });

  t('settings', () => {
    const reported = configHelp()
      .split('\n')
      .filter((line) => line.startsWith('  '))
      .map((line) => line.trim().split(' ')[0]);
    assert.deepEqual(reported.sort(), names.settings);
    assert.deepEqual(found(/\benv\.(POSTLINE_\w+)/g), names.testSettings);
  });

  t('actors of events that no caller asked for', () => {
    const written = found(/\{ type: '((?:service|admin)', id: '[^']+)' \}/g).map((text) =>
      text.replace("', id: '", ' '),
    );
    const services = found(/\bserviceContext\('([^']+)'/g).map((name) => `service ${name}`);
    assert.deepEqual([...new Set([...written, ...services])].sort(), names.ownActors);
  });

  t('figures for Prometheus', () => {
    const now = found(
      /new (?:Gauge|Counter|Histogram|Summary)(?:<[^>]*>)?\(\{[^}]*?\bname: '([^']+)'/g,
      /\b(?:gauge|counter|histogram)\(\s*'([^']+)'/g,
    );
    assert.deepEqual(now, names.prometheusNames);
    const named = count(/new (?:Gauge|Counter|Histogram|Summary)(?:<[^>]*>)?\(\{[^}]*?\bname: /g);
    assert.equal(
      count(/new (?:Gauge|Counter|Histogram|Summary)\b/g),
      named,
      'a figure whose name the scan does not find',
    );
  });
});
