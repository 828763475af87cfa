/** The calls that go out to LinkedIn for each setting, each kind of media and each question, as text. */
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { PublishRequest } from '#contracts/ports/platform.ts';
import { type LinkedInAccount, type LinkedInWorld, linkedinWorld } from '#test/support/networks/linkedin/world.ts';
import { mediaOf } from '#test/support/networks/world-parts.ts';

interface Given {
  readonly small: string;
  readonly large: string;
  /** A page with a title and a picture. */
  readonly page: string;
}
type Over = (given: Given) => Partial<PublishRequest>;

const image = ({ small }: Given, altText: string | null = null) =>
  mediaOf(small, { kind: 'image', contentType: 'image/jpeg', bytes: 1_000, altText });

const cases: readonly (readonly [name: string, by: 'member' | 'organization', over: Over])[] = [
  ['text of a member', 'member', () => ({})],
  ['text of an organization', 'organization', () => ({})],
  ['visibility: PUBLIC', 'member', () => ({ overrides: { visibility: 'PUBLIC' } })],
  ['visibility: CONNECTIONS', 'member', () => ({ overrides: { visibility: 'CONNECTIONS' } })],
  [
    'signs of the little text format, a hashtag, a mention and an address',
    'member',
    () => ({
      content:
        'C# (and) [more] {x} <y> a_b ~c~ *d* e|f g\\h i@j #Café_1 #1 @[Acme (Inc.)](urn:li:organization:7) http://127.0.0.1:9/a_(b)#c',
    }),
  ],
  [
    'firstComment, whose text is plain',
    'organization',
    () => ({ overrides: { firstComment: 'See (this) [one] #tag_1' } }),
  ],
  ['a link to a page', 'organization', ({ page }) => ({ content: `Read this: ${page}.` })],
  ['one image with an alt text', 'member', (given) => ({ media: [image(given, 'A cup')] })],
  [
    'three images, two with alt texts, without text',
    'organization',
    (given) => ({ content: '', media: [image(given, 'A cup'), image(given), image(given, 'A plate')] }),
  ],
  [
    'a GIF with an alt text',
    'member',
    ({ small }) => ({
      media: [mediaOf(small, { kind: 'gif', contentType: 'image/gif', bytes: 1_000, altText: 'It turns' })],
    }),
  ],
  [
    'a video of three parts',
    'organization',
    ({ large }) => ({
      media: [mediaOf(large, { kind: 'video', contentType: 'video/mp4', bytes: 9_000_000, altText: 'Not sent' })],
    }),
  ],
  [
    'a document',
    'member',
    ({ small }) => ({
      content: '\nOur year\nin figures',
      media: [mediaOf(small, { kind: 'document', contentType: 'application/pdf', bytes: 1_000 })],
    }),
  ],
];

const bodyOf = ({ body }: NetworkCall): string =>
  body.length === 0
    ? ''
    : ` ${body.map((one) => (Buffer.isBuffer(one) ? (one.length > 2_000 ? `<${one.length} bytes>` : one.toString('utf8')) : `<bytes ${one.start} to ${one.end}>`)).join('')}`;

/** Ids are numbered in the order in which they come up. */
const namer = (known: ReadonlyMap<string, string>) => {
  const names = new Map<string, string>();
  return (text: string): string => {
    let shown = text;
    for (const [id, name] of known) shown = shown.replaceAll(id, name);
    return shown
      .replaceAll(/(?:C4E)?72400000000000\d{5}/g, (id) => {
        const name = names.get(id) ?? `<id ${names.size + 1}>`;
        names.set(id, name);
        return name;
      })
      .replaceAll(/"\\"[0-9a-f]{16}\\""/g, '"<tag>"');
  };
};

const headersOf = ({ headers }: NetworkCall): string => {
  const { authorization, 'linkedin-version': version, 'x-restli-method': method, 'content-type': type } = headers;
  const said = [
    ...(authorization?.startsWith('Bearer ') === true ? [] : ['without a token']),
    ...(version === undefined ? ['without a version'] : []),
    ...(method === undefined ? [] : [method]),
    ...(type === undefined || type === 'application/json' ? [] : [type]),
  ];
  return said.length === 0 ? '' : ` [${said.join(', ')}]`;
};

const shown = (origin: string, calls: readonly NetworkCall[], name: (text: string) => string): string =>
  calls
    .map((call) => name(`  ${call.method} ${call.url.replace(origin, '')}${headersOf(call)}${bodyOf(call)}\n`))
    .join('');

const startPage = async (): Promise<{ readonly origin: string; close(): void }> => {
  const server = createServer(({ url }, response) => {
    if (url === '/picture') response.writeHead(200, { 'content-type': 'image/png' }).end('PNG');
    else {
      const head =
        '<title>No</title><meta property="og:title" content="A page &amp; more"><meta property="og:image" content="/picture">';
      response.writeHead(200, { 'content-type': 'text/html' }).end(`<html><head>${head}</head></html>`);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
};

/** What is asked beside posts: reading back, removal, figures. */
const questions = async (world: LinkedInWorld, by: LinkedInAccount, posts: readonly string[]) => {
  const signal = AbortSignal.timeout(5_000);
  const asked = posts.map((externalId) => ({
    ...{ targetId: by.id, externalId, publishedAt: new Date().toISOString(), use: 'feed' as const },
    hasVideo: externalId.includes('ugcPost'),
  }));
  for await (const one of world.source.fetchPostInsights('linkedin', by, asked, signal)) {
    if (one.kind !== 'reported') throw new Error(JSON.stringify(one));
  }
  const answer = await world.source.fetchAccountInsights('linkedin', by, signal);
  if (answer.kind !== 'reported') throw new Error(JSON.stringify(answer));
  const [externalId = ''] = posts;
  const removed = await world.adapter.removePost({ platform: 'linkedin', account: by, externalId }, signal);
  if (removed.kind !== 'removed') throw new Error(JSON.stringify(removed));
};

export const renderedCalls = async (): Promise<string> => {
  // The figures of days are asked for by their instants.
  const clock = () => Date.parse('2026-11-29T12:00:00.000Z');
  const world = await linkedinWorld({}, { clock });
  const page = await startPage();
  const folder = mkdtempSync(path.join(tmpdir(), 'linkedin-calls-'));
  try {
    const given = { small: path.join(folder, 'small'), large: path.join(folder, 'large'), page: `${page.origin}/a_b` };
    writeFileSync(given.small, Buffer.alloc(1_000, 7));
    writeFileSync(given.large, '');
    truncateSync(given.large, 9_000_000);
    let text = '';
    const section = async (name: string, by: LinkedInAccount, run: () => Promise<void>): Promise<void> => {
      const from = world.http.calls.length;
      await run();
      const known = new Map([
        [encodeURIComponent(by.externalId), '<account>'],
        [by.externalId, '<account>'],
        [page.origin, '<page>'],
        [world.network.origin, ''],
      ]);
      text += `${name}\n${shown(world.network.origin, world.http.calls.slice(from), namer(known))}\n`;
    };
    for (const [name, holder, over] of cases) {
      const account = await world[holder]();
      const asked = world.request(account, over(given));
      await section(name, account, async () => {
        const { outcome } = await world.publish(asked);
        if (outcome.kind !== 'published') throw new Error(`${name}: ${JSON.stringify(outcome)}`);
        const { firstComment } = asked.overrides;
        if (firstComment === undefined) return;
        const { targetId } = asked;
        const comment = { targetId, platform: 'linkedin', account, externalId: outcome.externalId } as const;
        const content = String(firstComment);
        const posted = await world.adapter.comment({ ...comment, content }, AbortSignal.timeout(5_000));
        if (posted.kind !== 'posted') throw new Error(JSON.stringify(posted));
      });
    }
    for (const holder of ['organization', 'member'] as const) {
      const account = await world[holder]();
      const posts: string[] = [];
      for (const [kind, contentType, file, bytes] of [
        ['image', 'image/jpeg', given.small, 1_000],
        ['video', 'video/mp4', given.large, 9_000_000],
      ] as const) {
        const media = [mediaOf(file, { kind, contentType, bytes })];
        const { outcome } = await world.publish(world.request(account, { content: kind, media }));
        if (outcome.kind === 'published') posts.push(outcome.externalId);
      }
      await section(`figures and removal of a${holder === 'member' ? '' : 'n'} ${holder}`, account, () =>
        questions(world, account, posts),
      );
    }
    return text;
  } finally {
    rmSync(folder, { recursive: true, force: true });
    page.close();
    world.network.close();
  }
};
