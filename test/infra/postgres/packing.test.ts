/** The packed form of events: every byte comes back, here and by SQL, and rows that are not packed are readable. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { type EventToAppend, maxAppendBytes } from '#contracts/ports/event-store.ts';
import { appendGroup } from '#infra/postgres/event-store.sql.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import type { Known } from '#infra/postgres/packing/form.ts';
import { pack } from '#infra/postgres/packing/pack.ts';
import { unpack } from '#infra/postgres/packing/unpack.ts';
import { words } from '#infra/postgres/packing/words.ts';
import { type PostgresHarness, postgresHarness, runSql } from '#test/support/event-store/postgres.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const workspace = randomUUID();
const post = randomUUID();
const known = (stream: string | null = null): Known => ({ workspace, partitionKey: post, stream });

const packedThrough = (bytes: Buffer, row: Known = known()): Buffer => unpack(pack(bytes, row), row);

const same = (text: string | Buffer, row: Known = known()): void => {
  const bytes = Buffer.from(text as string);
  const back = packedThrough(bytes, row);
  assert.ok(back.equals(bytes), `${JSON.stringify(bytes.toString())} came back as ${JSON.stringify(back.toString())}`);
};

/** Texts that look like what is packed, and are not quite. */
const lookalikes = [
  randomUUID(),
  randomUUID().toUpperCase(),
  randomUUID().slice(1),
  `${randomUUID()}0`,
  '00000000-0000-0000-0000-000000000000',
  '0000000-00000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  `ffffffff-ffff-ffff-ffff-fffffffffff\u00e9`,
  '2026-01-31T08:00:00.000Z',
  '2026-02-29T08:00:00.000Z',
  '2028-02-29T08:00:00.000Z',
  '2026-02-30T08:00:00.000Z',
  '2026-04-31T08:00:00.000Z',
  '2026-00-10T08:00:00.000Z',
  '2026-13-10T08:00:00.000Z',
  '2026-12-00T08:00:00.000Z',
  '2026-12-32T08:00:00.000Z',
  '2026-01-31T24:00:00.000Z',
  '2026-01-31T23:60:00.000Z',
  '2026-01-31T23:59:60.000Z',
  '2026-01-31T23:59:59.999Z',
  '2026-01-31T08:00:00.000z',
  '2026-01-31t08:00:00.000Z',
  '2026-01-31T08:00:00,000Z',
  '2026-01-31T08:00:00.00',
  '1970-01-01T00:00:00.000Z',
  '1969-12-31T23:59:59.999Z',
  '0000-01-01T00:00:00.000Z',
  '9999-12-31T23:59:59.999Z',
  'a'.repeat(64),
  'a'.repeat(63),
  'a'.repeat(65),
  'A'.repeat(64),
  randomBytes(32).toString('hex'),
  `${'ab'.repeat(31)}ag`,
  'Grüße, мир, 世界, 🎈 and so on',
  '\0\u0001\u0002\u0003\u0004\u000f\u0010\u001f\u007f\u0080\u00ff',
];

const anyByte = Buffer.from(Array.from({ length: 512 }, (_, at) => at & 255));

suite('packed events', { timeoutMs: 120_000 }, (t) => {
  let harness: PostgresHarness;
  let store: PostgresEventStore;

  t.before(async () => {
    harness = await postgresHarness();
    store = await harness.open();
  });
  t.after(() => harness.close());

  const eventOf = (data: Buffer | string, metadata: Buffer | string): EventToAppend => ({
    id: randomUUID(),
    type: 'Anything',
    data: Buffer.from(data as string),
    metadata: Buffer.from(metadata as string),
    partitionKey: post,
  });

  const appended = async (events: readonly EventToAppend[]): Promise<string> => {
    const stream = `target-${randomUUID()}`;
    await store.append(stream, 'none', events);
    return stream;
  };

  /** As the store and as the view give them. */
  const bytesOf = async (stream: string) => {
    const read = (await store.read(stream)).map(({ data, metadata }) => [Buffer.from(data), Buffer.from(metadata)]);
    const seen = await runSql(harness.url, 'select data, metadata from es.events where stream = $1 order by revision', [
      stream,
    ]);
    return { read, seen: seen.map(({ data, metadata }) => [data, metadata]) };
  };

  t('every word, and every text that looks like one, comes back', () => {
    for (const word of words) {
      same(word);
      same(word.slice(0, -1));
      same(`${word}${word}`);
    }
    for (const text of lookalikes) {
      same(text);
      same(JSON.stringify({ workspaceId: text, text, again: [text, text] }));
    }
    same('');
    same(anyByte);
  });

  // Stored rows have these codes: another form is another version.
  t('each kind of code is what it was', () => {
    const row: Known = {
      workspace: '11111111-1111-4111-8111-111111111111',
      partitionKey: '22222222-2222-4222-8222-222222222222',
      stream: 'target-33333333-3333-4333-8333-333333333333',
    };
    const other = '44444444-4444-4444-8444-444444444444';
    const text = [
      `{"workspaceId":"${row.workspace}","partitionKey":"${row.partitionKey}","failure":"${row.stream?.slice(7)}`,
      `","commandId":"${other}","occurredAt":"2026-01-31T08:00:00.000Z","sha256":"${'0f'.repeat(32)}","again":"${other}`,
      '","figures":{"impressions":12,"text":"é\n',
    ].join('');
    assert.equal(
      pack(Buffer.from(text), row).toString('hex'),
      '800481051000068a01444444444444444484444444444444448b02019c1310e40010a1030f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0fff616761696e223a220715b331322c2274657874223a220003c3a90a',
    );
    same(text, row);
  });

  t('uuids come back from the row’s columns and from one another, more of them than have a number', () => {
    const stream = `target-${randomUUID()}`;
    const uuids = [workspace, post, stream.slice(7), ...Array.from({ length: 20 }, () => randomUUID())];
    same(JSON.stringify([...uuids, ...uuids]), known(stream));
    const row: Known = { workspace: null, partitionKey: 'short', stream: `é-${post}` };
    same(JSON.stringify([...uuids, ...uuids]), row);
    assert.equal(pack(Buffer.from(workspace), known()).length, 1);
    assert.equal(pack(Buffer.from(post), known()).length, 1);
    assert.equal(pack(Buffer.from(stream.slice(7)), known(stream)).length, 1);
  });

  t('random pieces of all kinds in random order come back', () => {
    const { next: random } = seeded('packed events');
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
    for (let round = 0; round < 3_000; round += 1) {
      const pieces = Array.from({ length: Math.floor(random() * 12) }, () => {
        const kind = random();
        if (kind < 0.5) return Buffer.from(pick(words));
        if (kind < 0.9) return Buffer.from(pick(lookalikes));
        return Buffer.from(Array.from({ length: Math.floor(random() * 300) }, () => Math.floor(random() * 256)));
      });
      same(Buffer.concat(pieces), known(random() < 0.5 ? `target-${pick(lookalikes)}` : null));
    }
  });

  t('bytes that are cut short, and codes of no meaning, are an error', () => {
    const packed = pack(Buffer.from(`"${randomUUID()}" 2026-01-31T08:00:00.000Z "${'ab'.repeat(32)}" é`), known());
    const cuts = [10, 22, 40, packed.length - 1].map((end) => packed.subarray(0, end));
    for (const cut of cuts) assert.throws(() => unpack(cut, known()), RangeError);
    const empty: Known = { workspace: null, partitionKey: '', stream: null };
    for (const code of [0x04, 0x05, 0x06, 0x0f]) {
      assert.throws(() => unpack(Buffer.from([code]), empty), RangeError, `${code}`);
    }
    assert.throws(() => unpack(Buffer.from([0x1f, 0xff]), empty), RangeError);
    const long = Buffer.alloc(maxAppendBytes, 0x80);
    assert.throws(() => unpack(long, empty), /longer than any append/);
  });

  t('the view gives the bytes that were appended, as the store does', async () => {
    const metadata = JSON.stringify({
      workspaceId: workspace,
      partitionKey: post,
      occurredAt: '2026-01-31T08:00:00.000Z',
    });
    const data = [
      ...lookalikes.map((text) => JSON.stringify({ targetId: text, post, text, all: [text, workspace] })),
      ...words.map((word) => `${word}${word}`),
      '{}',
      '',
      anyByte,
    ];
    const events = data.map((one) => eventOf(one, metadata));
    const stream = await appended(events);
    const { read, seen } = await bytesOf(stream);
    assert.deepEqual(
      read,
      events.map((one) => [one.data, one.metadata]),
    );
    assert.deepEqual(seen, read);
    const rows = await runSql(
      harness.url,
      `select count(*)::int as n from es.event_rows where stream = $1 and packing = 1 and workspace = $2
         and octet_length(data) + octet_length(metadata) < unpacked_bytes`,
      [stream, workspace],
    );
    assert.ok(Number(rows[0]?.n) > events.length * 0.9);
  });

  t('bytes that packing would make longer are stored as they are', async () => {
    const events = [eventOf(randomBytes(2_000), randomBytes(100)), eventOf('', '')];
    const stream = await appended(events);
    const { read, seen } = await bytesOf(stream);
    assert.deepEqual(
      read,
      events.map((one) => [one.data, one.metadata]),
    );
    assert.deepEqual(seen, read);
    const rows = await runSql(
      harness.url,
      'select 1 from es.event_rows where stream = $1 and packing is null and unpacked_bytes is null and workspace is null',
      [stream],
    );
    assert.equal(rows.length, 2);
  });

  t('a row that a later release packed is never read as another', async () => {
    const stream = await appended([eventOf('{}', JSON.stringify({ workspaceId: workspace }))]);
    await runSql(harness.url, 'update es.event_rows set packing = 2 where stream = $1', [stream]);
    try {
      await assert.rejects(store.read(stream));
    } finally {
      await runSql(harness.url, 'update es.event_rows set packing = 1 where stream = $1', [stream]);
    }
    assert.equal((await store.read(stream)).length, 1);
  });

  t('rows that are packed and rows that are not are one history, and the view shows the bytes of both', async () => {
    const schema = 'mixed';
    const over = await PostgresEventStore.open({ url: harness.url, schema });
    const insert = async (stream: string, revision: number, metadata: string): Promise<void> => {
      await runSql(
        harness.url,
        `insert into ${schema}.event_rows (position, stream, revision, id, type, data, metadata, topic, partition, partition_key)
         values (nextval('${schema}.positions'), $1, $2, gen_random_uuid(), 'Plain', $3, $4, 'posts', 1, $5)`,
        [stream, revision, Buffer.from('{"a":1}'), Buffer.from(metadata), post],
      );
    };
    const metadata = JSON.stringify({ workspaceId: workspace, partitionKey: post });
    const stream = `target-${randomUUID()}`;
    try {
      await insert(stream, 0, metadata);
      await over.append(stream, 0n, [eventOf('{"b":2}', metadata)]);
      await insert(stream, 2, metadata);
      await over.append(stream, 2n, [eventOf('{"c":3}', metadata)]);
      const wanted = ['{"a":1}', '{"b":2}', '{"a":1}', '{"c":3}'];
      const read = await over.readAll({ after: null, limit: 10 });
      assert.deepEqual(
        read.map(({ data }) => Buffer.from(data).toString()),
        wanted,
      );
      assert.deepEqual(
        read.map(({ revision }) => revision),
        [0n, 1n, 2n, 3n],
      );
      const mine = await over.readWorkspace(workspace, { after: null, limit: 10 });
      assert.deepEqual(
        mine.events.map(({ id }) => id),
        read.map(({ id }) => id),
      );
      const seen = await runSql(
        harness.url,
        `select convert_from(data, 'UTF8') as data, convert_from(metadata, 'UTF8') as metadata, created from ${schema}.events order by position`,
      );
      assert.deepEqual(
        seen.map((row) => row.data),
        wanted,
      );
      assert.ok(seen.every((row) => row.metadata === metadata && row.created instanceof Date));
      await assert.rejects(insert(stream, 3, metadata), /duplicate key/);
    } finally {
      await over.close();
    }
    // A second process, and one that comes back, change nothing.
    await (await PostgresEventStore.open({ url: harness.url, schema })).close();
    assert.match(appendGroup(schema), /event_rows/);
  });
});
