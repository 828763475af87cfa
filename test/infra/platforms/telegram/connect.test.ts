import assert from 'node:assert/strict';
import {
  checkBot,
  checkChat,
  type ListenLease,
  type ListenLeases,
  listen,
  newCode,
  type Posted,
} from '#infra/platforms/telegram/index.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { telegramWorld } from './world.ts';

/** One holder of each bot at a time. */
class MemoryLeases implements ListenLeases {
  readonly held: string[] = [];
  readonly #last = new Map<string, Promise<void>>();

  async hold(botId: string): Promise<ListenLease> {
    const before = this.#last.get(botId) ?? Promise.resolve();
    const done = Promise.withResolvers<void>();
    this.#last.set(botId, done.promise);
    await before;
    this.held.push(botId);
    return { lost: new AbortController().signal, release: async () => done.resolve() };
  }
}

suite('telegram is connected', (t) => {
  let it: Awaited<ReturnType<typeof telegramWorld>>;
  t.before(async () => {
    it = await telegramWorld();
  });
  t.after(() => it?.network.close());
  const soon = () => AbortSignal.timeout(10_000);

  t('a channel whose bot may post is connected by its number', async () => {
    const bot = it.network.bot();
    const chat = it.network.chat({ username: 'acme_open' });
    const checked = await checkChat(it.options, { token: bot.token, chatId: String(chat.id) }, soon());
    assert.deepEqual(checked, {
      kind: 'connected',
      credential: { secret: { botToken: bot.token, chatId: String(chat.id) }, expiresAt: null },
      profile: {
        ...{ externalId: String(chat.id), username: 'acme_open', displayName: chat.title, avatarUrl: null },
        scopes: ['can_post_messages'],
        consentEndsAt: null,
      },
    });
  });

  t('what is wrong is told in words', async () => {
    const bot = it.network.bot();
    const words = async (rights: 'no_posts' | 'member' | 'kicked', token = bot.token) => {
      const chatId = String(it.network.chat({ rights }).id);
      const checked = await checkChat(it.options, { token, chatId }, soon());
      return checked.kind === 'refused' ? checked.words : checked.kind;
    };
    assert.match(await words('no_posts'), /administrator of the channel with the right to post/);
    assert.match(await words('member'), /administrator of the channel/);
    assert.match(await words('kicked'), /not in this chat any more/);
    assert.match(await words('member', '1:gone'), /does not take this bot token/);
    const wrong = await checkBot(it.options, 'a/../b', soon());
    assert.ok(wrong.kind === 'refused');
  });

  t('a code speaks for the chat it is posted in, if its writer does', async () => {
    const bot = it.network.bot();
    const channel = it.network.chat();
    const group = it.network.chat({ type: 'supergroup', admins: [11] });
    const got: Posted[] = [];
    const stop = new AbortController();
    const leases = new MemoryLeases();
    const listener = { posted: async (posted: Posted) => void got.push(posted) };
    const pause = async () => undefined;
    const options = { ...it.options, token: bot.token, leases, listener, pause };
    const listening = [listen(options, stop.signal), listen(options, stop.signal)];
    const [first, second, stranger] = [newCode(), newCode(), newCode()];
    it.network.write(group, `/connect ${stranger}`, { id: 12 });
    it.network.tell({
      channel_post: {
        ...{ message_id: 1, chat: { id: channel.id }, text: `/connect ${stranger}` },
        forward_origin: { type: 'channel' },
      },
    });
    it.network.write(channel, `/connect ${first}`);
    it.network.write(group, `/connect@${bot.username} ${second.toLowerCase()}`, { id: 11 });
    await until('both codes are read', () => got.length >= 2);
    assert.deepEqual(got, [
      { code: first, chatId: String(channel.id), writerId: null },
      { code: second, chatId: String(group.id), writerId: '11' },
    ]);
    assert.deepEqual(leases.held, [bot.token.split(':')[0]], 'one listens, and the lease names no secret');
    stop.abort();
    await Promise.all(listening);
  });

  t('a code that could not be stored comes again', async () => {
    const bot = it.network.bot();
    const channel = it.network.chat();
    const got: string[] = [];
    const code = newCode();
    it.network.write(channel, `/connect ${code}`);
    const failing = {
      ...{ ...it.options, token: bot.token, leases: new MemoryLeases(), pause: async () => undefined },
      listener: { posted: () => Promise.reject(new Error('the store is away')) },
    };
    await assert.rejects(listen(failing, soon()), /the store is away/);
    const stop = new AbortController();
    const listener = { posted: async (posted: Posted) => void got.push(posted.code) };
    const listening = listen({ ...failing, listener }, stop.signal);
    await until('the code is read', () => got.length > 0);
    stop.abort();
    await listening;
    assert.deepEqual(got, [code]);
  });

  t('a dead token ends the listening and says so', async () => {
    const leases = new MemoryLeases();
    const listener = { posted: async () => undefined };
    const options = { ...it.options, token: '1:gone', leases, listener, pause: async () => undefined };
    const stopped = await listen(options, soon());
    assert.ok(stopped.kind === 'refused' && stopped.result.code === 401);
  });
});
