/**
 * X, Telegram and Bluesky for a bench, in a process of their own, and a fourth server that answers after 20 s. Its first
 * message names their addresses and the accounts they have; any message to it is answered with the posts that were made.
 */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { NewCredential } from '#contracts/ports/credentials.ts';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import { type Person, startX } from '#test/support/networks/x/index.ts';

export type SimulatedPlatform = 'x' | 'telegram' | 'bluesky';

export interface SimulatedAccount {
  /** On the network. */
  readonly externalId: string;
  readonly secret: NewCredential['secret'];
}

export interface Simulated {
  readonly accounts: Readonly<Record<SimulatedPlatform, readonly SimulatedAccount[]>>;
  readonly xApi: string;
  readonly telegramApi: string;
  readonly slow: string;
}

/** Milliseconds after which the fourth server answers. */
const slowMs = 20_000;
/** Channels of one bot. */
const perBot = 20;

const listening = async (listener: RequestListener): Promise<string> => {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

/** A personal data server that takes posts (com.atproto.repo.putRecord) and nothing else. */
const startBluesky = async () => {
  const posts: string[] = [];
  const origin = await listening(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const isWrite = request.url === '/xrpc/com.atproto.repo.putRecord' && request.headers.authorization !== undefined;
    response.writeHead(isWrite ? 200 : 501, { 'content-type': 'application/json' });
    if (!isWrite) {
      response.end('{"error":"MethodNotImplemented","message":"Method Not Implemented"}');
      return;
    }
    const { repo, collection, rkey } = JSON.parse(Buffer.concat(pieces).toString('utf8'));
    const uri = `at://${repo}/${collection}/${rkey}`;
    posts.push(uri);
    response.end(JSON.stringify({ uri, cid: 'bafyreib2rxk3rybk3aobmv5cjuql3bm2twh4jo5uxgf5kpqcsgz7soitae' }));
  });
  return { origin, posts };
};

const [x, telegram, bluesky] = [await startX(), await TelegramSimulator.start(), await startBluesky()];
const slow = await listening((request, response) => {
  request.resume();
  setTimeout(() => response.end('{}'), slowMs);
});

const each = <T>(make: (at: number) => T): readonly T[] =>
  Array.from({ length: Number(process.argv[2] ?? 0) }, (_, at) => make(at));
const accessUntil = new Date(Date.now() + 7_200_000).toISOString();
const xAccount = (person: Person): SimulatedAccount => ({
  externalId: person.id,
  secret: { ...x.grant(person), accessUntil },
});
let bot = telegram.bot();
const simulated: Simulated = {
  ...{ xApi: x.origin, telegramApi: telegram.origin, slow },
  accounts: {
    x: each(() => xAccount(x.person())),
    telegram: each((at) => {
      if (at % perBot === 0) bot = telegram.bot();
      const chatId = String(telegram.chat().id);
      return { externalId: chatId, secret: { botToken: bot.token, chatId } };
    }),
    bluesky: each((at) => {
      const did = `did:plc:${String(at).padStart(24, 'a')}`;
      const tokens = { accessJwt: 'access', refreshJwt: 'refresh', accessUntil };
      return { externalId: did, secret: { service: bluesky.origin, did, ...tokens } };
    }),
  },
};
process.on('message', () => {
  const refused = x.state.creates.filter(({ postId }) => postId === null).length;
  process.send?.({ posts: x.state.posts.length + telegram.ledger.length + bluesky.posts.length, refused });
});
process.on('disconnect', () => process.exit());
process.send?.(simulated);
