/** The calls that go out to X for each setting and each kind of media, as text. */
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { PublishRequest } from '#contracts/ports/platform.ts';
import { mediaOf } from '#test/support/networks/world-parts.ts';
import { type XWorld, xWorld } from '#test/support/networks/x/world.ts';

type Over = (files: Files) => Partial<PublishRequest>;

interface Files {
  readonly small: string;
  readonly large: string;
}

const image = ({ small }: Files, altText: string | null = null) =>
  mediaOf(small, { kind: 'image', contentType: 'image/jpeg', bytes: 1_000, altText });

/** `of 2`: a thread of two segments. */
const cases: readonly (readonly [string, Over])[] = [
  ['text', () => ({})],
  ['quoteTweetId, an id', () => ({ overrides: { quoteTweetId: '<quoted>' } })],
  ['quoteTweetId, an address', () => ({ overrides: { quoteTweetId: 'https://x.com/a/status/<quoted>?s=20' } })],
  ['replySettings: following', () => ({ overrides: { replySettings: 'following' } })],
  ['replySettings: mentionedUsers', () => ({ overrides: { replySettings: 'mentionedUsers' } })],
  ['replySettings: subscribers', () => ({ overrides: { replySettings: 'subscribers' } })],
  ['replySettings: verified', () => ({ overrides: { replySettings: 'verified' } })],
  ['replySettings: verifiedOnly', () => ({ overrides: { replySettings: 'verifiedOnly' } })],
  ['madeWithAi', () => ({ overrides: { madeWithAi: true } })],
  ['madeWithAi: false', () => ({ overrides: { madeWithAi: false }, aiDisclosure: true })],
  ['paidPartnership', () => ({ overrides: { paidPartnership: true } })],
  ['paidPartnership: false', () => ({ overrides: { paidPartnership: false } })],
  ['firstComment', () => ({ overrides: { firstComment: 'And a comment' } })],
  ['one image', (files) => ({ media: [image(files)] })],
  [
    'four images, two with alt texts, without text',
    (files) => ({
      content: '',
      media: [image(files, 'A cup'), image(files), image(files, 'A plate'), image(files)],
    }),
  ],
  [
    'a GIF with an alt text',
    ({ small }) => ({
      media: [mediaOf(small, { kind: 'gif', contentType: 'image/gif', bytes: 1_000, altText: 'It turns' })],
    }),
  ],
  [
    'a video of three segments',
    ({ large }) => ({
      media: [mediaOf(large, { kind: 'video', contentType: 'video/mp4', bytes: 9_000_000, altText: 'Not sent' })],
    }),
  ],
  [
    'a thread of two, its settings on the head alone',
    () => ({
      overrides: { replySettings: 'following', madeWithAi: true },
      thread: { index: 0, of: 2, replyTo: null },
    }),
  ],
];

const bodyOf = ({ body, headers }: NetworkCall): string => {
  if (body.length === 0) return '';
  const type = headers['content-type'] ?? '';
  if (type === 'application/json') return ` ${String(body[0])}`;
  const mark = /boundary=(\S+)/.exec(type)?.[1] ?? '?';
  const parts = body.map((one) => (Buffer.isBuffer(one) ? one.toString('utf8') : `<bytes ${one.start} to ${one.end}>`));
  return parts
    .join('')
    .split(`--${mark}`)
    .slice(1, -1)
    .map(
      (part) =>
        `\n    ${part
          .replace(/content-disposition: form-data; /, '')
          .trim()
          .replaceAll('\r\n', ' | ')}`,
    )
    .join('');
};

/** Ids are numbered in the order in which they come up. */
const namer = (known: ReadonlyMap<string, string>) => {
  const names = new Map(known);
  return (text: string): string =>
    text.replace(/19680000000000\d{5}/g, (id) => {
      const name = names.get(id) ?? `<id ${names.size - known.size + 1}>`;
      names.set(id, name);
      return name;
    });
};

const shown = (world: XWorld, calls: readonly NetworkCall[], name: (text: string) => string): string =>
  calls
    .map((call) => {
      const { authorization = '' } = call.headers;
      const who = authorization.startsWith('Bearer ') ? '' : ' [without a token]';
      return name(`  ${call.method} ${call.url.replace(world.network.origin, '')}${who}${bodyOf(call)}\n`);
    })
    .join('');

export const renderedCalls = async (): Promise<string> => {
  const world = await xWorld();
  const folder = mkdtempSync(path.join(tmpdir(), 'x-calls-'));
  try {
    const files = { small: path.join(folder, 'small'), large: path.join(folder, 'large') };
    writeFileSync(files.small, Buffer.alloc(1_000, 7));
    writeFileSync(files.large, '');
    truncateSync(files.large, 9_000_000);
    const other = world.network.person();
    const quoted = await world.publish(world.request(await world.account(other), { content: 'Quote me' }));
    if (quoted.outcome.kind !== 'published') throw new Error(JSON.stringify(quoted.outcome));
    const quotedId = quoted.outcome.externalId;
    let text = '';
    for (const [name, over] of cases) {
      const account = await world.account(world.network.person({ tier: 'enterprise' }));
      const given = over(files);
      const overrides = JSON.parse(JSON.stringify(given.overrides ?? {}).replace('<quoted>', quotedId));
      const asked = world.request(account, { ...given, overrides });
      const known = new Map([
        [quotedId, '<quoted>'],
        [account.externalId, '<account>'],
      ]);
      const from = world.http.calls.length;
      const { outcome } = await world.publish(asked);
      if (outcome.kind !== 'published') throw new Error(`${name}: ${JSON.stringify(outcome)}`);
      const { externalId } = outcome;
      if (overrides.firstComment !== undefined) {
        const { targetId } = asked;
        const content = String(overrides.firstComment);
        const comment = { targetId, platform: 'x', account, externalId, content } as const;
        const posted = await world.adapter.comment(comment, AbortSignal.timeout(5_000));
        if (posted.kind !== 'posted') throw new Error(JSON.stringify(posted));
      }
      if (asked.thread !== null) {
        const thread = { index: 1, of: 2, replyTo: { parent: externalId, head: externalId } };
        const second = await world.publish({ ...asked, content: 'Second', thread });
        if (second.outcome.kind !== 'published') throw new Error(JSON.stringify(second.outcome));
      }
      text += `${name}\n${shown(world, world.http.calls.slice(from), namer(known))}\n`;
    }
    return text;
  } finally {
    rmSync(folder, { recursive: true, force: true });
    world.network.close();
  }
};
