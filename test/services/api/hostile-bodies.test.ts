/** One caller's body, whatever it is, holds the api's event loop for at most 50 ms: nobody else waits longer for it. */
import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { platforms } from '#schemas/common.ts';
import { defaultBodyLimit, JsonMeter } from '#services/api/call/json.ts';
import { Refusal } from '#services/api/call/refusal.ts';
import { isJsonType } from '#services/api/http/rest.ts';
import { type Composer, composer } from '#test/support/composing.ts';
import { rowsOfRun } from '#test/support/drawing.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { rawCall } from '#test/support/raw-call.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { longestTurn } from '#test/support/turns.ts';

const longest = 50;
/** Beside it stands what the body needs to be looked at at all. */
const room = defaultBodyLimit - 1_000;
const fill = (unit: string, bytes = room): string => unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)));
const list = (unit: string, count: number): string => `[${Array(count).fill(unit).join(',')}]`;
const members = (count: number, of: (index: number) => string): string =>
  `{${Array.from({ length: count }, (_, index) => of(index)).join(',')}}`;
const texts = (count: number): string => JSON.stringify(Array.from({ length: count }, () => randomUUID()));

type Shape = readonly [what: string, path: string, body: string, status: number];

const ofClients = (more: string): string => `{"name":"${randomUUID()}","type":"brand",${more}}`;

const clientShapes: readonly Shape[] = [
  ['a long text', '/clients', ofClients(`"rules":{"a":"${fill('x')}"}`), 422],
  [
    'a long text 32 levels deep',
    '/clients',
    ofClients(`"rules":${'{"b":1,"a":'.repeat(30)}"${fill('日')}"${'}'.repeat(30)}`),
    422,
  ],
  ['many members', '/clients', ofClients(`"rules":${members(9_900, (n) => `"${'v'.repeat(30)}${n}":1`)}`), 200],
  [
    'members that differ at their end',
    '/clients',
    ofClients(`"rules":${members(9_000, (n) => `"${'v'.repeat(100)}${n}":1`)}`),
    422,
  ],
  [
    'NULs below a long member',
    '/clients',
    ofClients(`"rules":{"${fill('k', 900_000)}":${list('"\\u0000"', 4_000)}}`),
    422,
  ],
  ['one member often', '/clients', `{"name":"a",${Array(9_900).fill('"rules":1').join(',')}}`, 422],
  ['blanks', '/clients', `{"name":"${fill(' ')}","type":"brand"}`, 422],
  ['brackets', '/clients', fill('['), 400],
  ['commas', '/clients', fill(','), 413],
  ['values', '/clients', ofClients(`"rules":{"a":[${fill('1,')}1]}`), 413],
];

const postShapes = ({ body }: Composer): readonly Shape[] => {
  const draft = (more: Record<string, string>): string => {
    const sent = { ...body({ saveDraft: true }), ...Object.fromEntries(Object.keys(more).map((name) => [name, null])) };
    const given = Object.entries(sent).filter(([name]) => !Object.hasOwn(more, name));
    return `{${[...given.map(([name, value]) => `"${name}":${JSON.stringify(value)}`), ...Object.entries(more).map(([name, json]) => `"${name}":${json}`)].join(',')}}`;
  };
  const of = (what: string, more: Record<string, string>, status = 422): Shape => [what, '/posts', draft(more), status];
  const ids = (platform: string) => `{"platform":"${platform}","mediaIdsOverride":${texts(20)}}`;
  return [
    of('wrong ids', { targets: `{"mode":"accounts","accountIds":${list('1', 9_900)}}` }),
    of('wrong variants', { variants: list('{"platform":1,"contentOverride":2}', 3_200) }),
    of('wrong segments', { thread: `{"segments":${list('{"content":1,"mediaIds":[1,2]}', 1_600)}}` }),
    of('wrong alt texts', { mediaAltTexts: members(9_000, (n) => `"k${n}":1`) }),
    of('wrong alt texts of long names', { mediaAltTexts: members(100, (n) => `"${'k'.repeat(10_000)}${n}":1`) }),
    of('media ids', { mediaIds: list(`"${randomUUID()}"`, 9_000) }),
    of('files that nobody knows', {
      mediaIds: texts(20),
      variants: `[${platforms.map(ids).join(',')}]`,
      thread: `{"segments":${list(`{"content":"a","mediaIds":${texts(20)}}`, 50)}}`,
    }),
    of('emoji', { content: `"${fill('😀')}"` }),
    of('escapes', { content: `"${fill('\\ud83d')}"` }),
    of('digits', { coverFrameMs: fill('9') }),
    of('a date that splits', { schedule: `{"type":"at","scheduledAt":"${fill('t')}"}` }),
    of('a date of blanks', { schedule: `{"type":"at","scheduledAt":"9999-12-31${fill(' ')}"}` }),
    of(
      'overrides',
      { variants: `[{"platform":"x","overrides":${members(5_000, (n) => `"k${n}":"${'v'.repeat(60)}"`)}}]` },
      200,
    ),
    of('fifty long segments', { thread: `{"segments":${list(`{"content":"${fill('😀', 7_000)}"}`, 50)}}` }, 200),
  ];
};

/** What each network counts most slowly. */
const slowTexts: Readonly<Record<string, string>> = {
  x: '日',
  threads: '(http://a.com/(',
  bluesky: 'é',
  instagram: '#1',
  telegram: '[](',
};

suite('hostile bodies', { timeoutMs: 180_000 }, (t) => {
  let world: World;
  let composed: Composer;
  t.before(async () => {
    world = await startWorld();
    composed = await composer(world, platforms);
    // In production they are another process, whose turns are none of the api's.
    await world.stopProjections();
  });
  t.after(() => world.close());

  const send = async (path: string, body: string | Buffer): Promise<number> =>
    (await rawCall(world, { method: 'POST', path, body, mayBreak: true })).status;

  /** The shorter of two: what happens once in a process (compiling, growing heaps) is no caller's doing. */
  const holds = async ([what, path, body, status]: Shape): Promise<void> => {
    // Encoded before: it takes this thread 100 ms, which the api's turns would be charged with.
    const bytes = Buffer.from(body);
    const first = await longestTurn(() => send(path, bytes));
    equal(first.result, status, what);
    if (first.ms <= longest) return;
    const second = await longestTurn(() => send(path, bytes));
    ok(second.ms <= longest, `${what}: the event loop was held for ${first.ms} and ${second.ms} ms`);
  };

  t('any member of a client', async () => {
    for (const shape of rowsOfRun('shapes of a client', clientShapes, ([what]) => what)) await holds(shape);
  });

  t('any member of a draft', async () => {
    for (const shape of rowsOfRun('shapes of a draft', postShapes(composed), ([what]) => what)) await holds(shape);
  });

  t('texts that every network counts at its slowest', async () => {
    const variants = Object.entries(slowTexts).map(([platform, unit]) => ({
      platform,
      contentOverride: unit.repeat(50_000 / unit.length),
      ...(platform === 'telegram' ? { overrides: { parseMode: 'MarkdownV2' } } : {}),
    }));
    await holds(['ten networks', '/posts', JSON.stringify(composed.body({ variants })), 422]);
    await holds(['a preview for ten networks', '/posts/preview', JSON.stringify(composed.body({ variants })), 200]);
    const query = `https://a.com/?a${'!'.repeat(3_980)} `;
    for (const unit of rowsOfRun('slow texts', ['😀', '👨‍', '日.', 'a-', query], (text) => text.slice(0, 20))) {
      const content = unit.repeat(50_000 / unit.length);
      await holds([unit.slice(0, 20), '/posts', JSON.stringify(composed.body({ content })), 422]);
    }
  });

  t('a bulk of the largest posts, made and refused', async () => {
    const segments = Array.from({ length: 50 }, () => ({ content: fill('😀', 6_500) }));
    const large = JSON.stringify(composed.body({ saveDraft: true, thread: { segments } }));
    const count = Math.min(50, Math.floor((16 * 1024 * 1024 - 100) / (Buffer.byteLength(large) + 1)));
    ok(count > 40, `${count} posts`);
    await holds([`${count} drafts`, '/posts/bulk', `{"posts":[${Array(count).fill(large).join(',')}]}`, 200]);
    const variants = Object.entries(slowTexts).map(([platform, unit]) => ({
      platform,
      contentOverride: unit.repeat(10_000 / unit.length),
    }));
    const slow = JSON.stringify(composed.body({ content: fill('日', 30_000), variants }));
    await holds(['50 slow posts', '/posts/bulk', `{"posts":[${Array(50).fill(slow).join(',')}]}`, 200]);
  });

  t('a post that is too large is refused before its texts are counted', async () => {
    const segments = Array.from({ length: 25 }, () => ({ content: 'https://a.com/?a'.padEnd(40_000, '!') }));
    const answer = await world.tester.post('/posts', composed.body({ thread: { segments } }));
    equal(answer.status, 422);
    deepEqual(
      answer.body.errors?.map(({ path }) => path),
      [''],
    );
  });

  t('of many wrong items twenty are reported, each by its place', async () => {
    const answer = await world.tester.request('POST', '/posts', {
      raw: `{"targets":{"mode":"accounts","accountIds":${list('1', 5_000)}}}`,
    });
    equal(answer.body.code, 'validation_failed');
    equal(answer.body.errors?.length, 20);
    const wrong = await world.tester.post('/posts', { ...composed.body(), mediaIds: ['x', 1] });
    deepEqual(
      wrong.body.errors?.map(({ path, code }) => `${path} ${code}`),
      ['/mediaIds/0 wrong_format', '/mediaIds/1 wrong_type'],
    );
  });

  t('too many values have their own code, and the connection stays open', async () => {
    // One connection: the second request stands behind the rest of the first.
    const { hostname, port } = new URL(world.origin());
    const body = ofClients(`"rules":{"a":[${fill('1,')}1]}`);
    const head = `Host: x\r\nAuthorization: Bearer ${world.testKey.secret}\r\n`;
    const posted = `POST /v1/clients HTTP/1.1\r\n${head}Content-Type: application/json\r\nIdempotency-Key: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const socket = connect(Number(port), hostname);
    socket.write(posted);
    socket.write(`GET /v1/agency HTTP/1.1\r\n${head}Connection: close\r\n\r\n`);
    let answers = '';
    for await (const chunk of socket) answers += String(chunk);
    deepEqual(answers.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 413', 'HTTP/1.1 200']);
    ok(answers.includes('"code":"too_many_values"'));
  });

  t('a content type over 200 characters is refused', async () => {
    const hostile = [`application/json${' '.repeat(15_000)}x`, `application/json${';'.repeat(200)}`];
    for (const type of hostile) {
      const asking = () => world.tester.request('POST', '/clients', { raw: '{}', headers: { 'content-type': type } });
      const { ms, result } = await longestTurn(asking);
      equal(result.status, 415);
      ok(ms < longest, `${ms} ms`);
    }
  });
});

suite('counting values while they come', (t) => {
  const valuesOf = (value: unknown): number =>
    typeof value !== 'object' || value === null
      ? 1
      : Object.values(value).reduce((sum: number, one) => sum + valuesOf(one), 1);
  const takes = (bytes: Buffer, limit: number, cut: () => number): boolean => {
    const meter = new JsonMeter(limit);
    try {
      for (let at = 0; at < bytes.length; ) {
        const next = at + 1 + cut();
        meter.take(bytes.subarray(at, next));
        at = next;
      }
      return true;
    } catch (error) {
      ok(error instanceof Refusal);
      return false;
    }
  };

  t('commas and brackets in texts do not count, wherever the chunks end', () => {
    const { int } = seeded('chunks');
    const text = JSON.stringify({
      'a,[{"\\': ['\\', '"', '\\"', ',,,[[[{{{', '\\\\",', '日,'],
      b: [1, [2, { c: null }], '\u{1f600},'],
    });
    const bytes = Buffer.from(text);
    const count = valuesOf(JSON.parse(text));
    for (let round = 0; round < 500; round += 1) {
      const cut = () => int(0, 3);
      ok(takes(bytes, count, cut), `round ${round}`);
      ok(!takes(bytes, count - 1, cut), `round ${round}`);
    }
  });

  t('an empty object or list may count twice, never less than once', () => {
    for (const text of ['{}', '[]', '[[],{},[]]', '[1]', '"a"', '[[[[1]]]]']) {
      const bytes = Buffer.from(text);
      ok(!takes(bytes, valuesOf(JSON.parse(text)) - 1, () => 0) || text === '"a"', text);
    }
  });
});

suite('content types of JSON', (t) => {
  t('are read as before', () => {
    const table: readonly (readonly [string, boolean])[] = [
      ['application/json', true],
      ['Application/JSON; charset=UTF-8', true],
      ['application/json;charset="utf-8"', true],
      ['application/json ; charset = utf-8 ;', true],
      ['application/json;', true],
      ['application/merge-patch+json', true],
      ['application/vnd.a.b+c-d+json', true],
      ['', false],
      ['text/json', false],
      ['application/jsonp', false],
      ['application/+json', false],
      ['application/a b+json', false],
      ['application/json; charset=latin1', false],
      ['application/json; charset=utf-8; charset=utf-8', false],
      ['application/json; boundary=x', false],
      ['application/json x', false],
      [`application/json${' '.repeat(184)}`, true],
      [`application/json${' '.repeat(185)}`, false],
    ];
    for (const [type, taken] of table) equal(isJsonType(type), taken, type);
  });
});
