import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { codeLimits } from '#contracts/ports/connect-codes.ts';
import type { Hearer, HearingState } from '#contracts/ports/network-listener.ts';
import { newCode, TelegramListener, type TelegramListenerOptions } from '#infra/platforms/telegram/index.ts';
import { PostgresConnectCodes } from '#infra/postgres/connect-codes.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { PostgresPushedPosts } from '#infra/postgres/pushed-posts.ts';
import type { Bot, Chat } from '#test/support/networks/telegram/state.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { telegramWorld } from './world.ts';

suite("the operator's bot is listened to", (t) => {
  let it: Awaited<ReturnType<typeof telegramWorld>>;
  let pool: Pool;
  let codes: PostgresConnectCodes;
  let pushed: PostgresPushedPosts;
  t.before(async () => {
    it = await telegramWorld();
    pool = openPool({ url: (await preparedDatabase()).url });
    codes = new PostgresConnectCodes({ pool });
    pushed = new PostgresPushedPosts({ pool });
  });
  t.after(async () => {
    await pool?.end();
    it?.network.close();
  });

  const minted = async (): Promise<string> => {
    const code = newCode();
    await codes.mint(code, randomUUID());
    return code;
  };
  const quick = { hearing: 1, unavailable: 1, conflict: 1 };
  const chats = (...some: readonly Chat[]) => new Set(some.map(({ id }) => String(id)));

  /** Listens until the condition holds; of the chats, those are connected. */
  const listen = async (
    bot: Bot,
    what: string,
    holds: (states: readonly HearingState[]) => boolean | Promise<boolean>,
    over: Partial<TelegramListenerOptions> & Partial<Hearer> & { readonly connectedTo?: ReadonlySet<string> } = {},
  ): Promise<readonly HearingState[]> => {
    const states: HearingState[] = [];
    const stop = new AbortController();
    const listener = new TelegramListener({
      ...{ ...it.options, token: bot.token, codes, pushed, pauses: quick, ...over },
    });
    const hearer: Hearer = {
      connected: async (ids) => new Set(ids.filter((id) => over.connectedTo?.has(id))),
      changed: async () => true,
      state: (state) => void states.push(state),
      ...over,
    };
    const listening = listener.listen(hearer, stop.signal);
    const failed = listening.then(() => false);
    try {
      await Promise.race([until(what, () => stop.signal.aborted || holds(states)), failed]);
    } finally {
      stop.abort();
      await listening.catch(() => undefined);
    }
    await failed;
    return states;
  };
  /** All that was told so far is confirmed: the network keeps none of it. */
  const drained = (bot: Bot) => () => bot.updates.length === 0;
  const callsOf = (method: string) => it.network.calls.filter((call) => call.method === method).length;

  t('a code speaks for the chat it is posted in, if its writer does', async () => {
    const bot = it.network.bot();
    const channel = it.network.chat();
    const group = it.network.chat({ type: 'supergroup', admins: [11] });
    const [first, second, stranger] = [await minted(), await minted(), await minted()];
    it.network.write(group, `/connect ${stranger}`, { id: 12 });
    it.network.tell({
      channel_post: {
        ...{ message_id: 1, chat: { id: channel.id }, text: `/connect ${stranger}` },
        forward_origin: { type: 'channel' },
      },
    });
    it.network.tell({
      message: {
        ...{ message_id: 1, chat: { id: group.id }, text: `/connect ${stranger}` },
        ...{ from: { id: 11 }, sender_chat: { id: channel.id } },
      },
    });
    it.network.write(channel, `/connect ${first}`);
    it.network.write(group, `/connect@${bot.username} ${second.toLowerCase()}`, { id: 11 });
    await listen(bot, 'all is read', drained(bot));
    assert.deepEqual(await codes.placesOf(first), [String(channel.id)]);
    assert.deepEqual(await codes.placesOf(second), [String(group.id)]);
    assert.deepEqual(await codes.placesOf(stranger), []);
  });

  t('codes of strangers cost no call, and a code that is posted everywhere costs a bound of calls', async () => {
    const bot = it.network.bot();
    const crowd = it.network.chat({ type: 'supergroup' });
    for (let at = 0; at < 250; at += 1) it.network.write(crowd, `/connect ${newCode()}`, { id: 12 });
    const before = callsOf('getChatMember');
    const taken: string[] = [];
    const open = codes.open.bind(codes);
    const counting = { open, spoke: codes.spoke.bind(codes), take: async (code: string) => taken.push(code) > 0 };
    await listen(bot, 'the codes of strangers are read', drained(bot), { codes: counting });
    assert.equal(callsOf('getChatMember'), before);
    assert.deepEqual(taken, [], 'and no write');
    const code = await minted();
    for (let at = 0; at < codeLimits.tries + 60; at += 1) it.network.write(crowd, `/connect ${code}`, { id: 12 });
    await listen(bot, 'the code is read', drained(bot));
    assert.equal(callsOf('getChatMember') - before, codeLimits.tries);
  });

  t('what could not be kept is told again', async () => {
    const bot = it.network.bot();
    const channel = it.network.chat();
    const code = await minted();
    it.network.write(channel, `/connect ${code}`);
    it.network.react(channel, 5, { '👍': 1 });
    const away = {
      open: codes.open.bind(codes),
      take: codes.take.bind(codes),
      spoke: () => Promise.reject(new Error('away')),
    };
    await assert.rejects(
      listen(bot, 'never', () => false, { codes: away }),
      /away/,
    );
    const full = { keep: () => Promise.reject(new Error('full')) };
    it.network.react(channel, 5, { '👍': 2 });
    await assert.rejects(
      listen(bot, 'never', () => false, { pushed: full, connectedTo: chats(channel) }),
      /full/,
    );
    assert.equal(bot.updates.length, 2);
    await listen(bot, 'all is kept', drained(bot), { connectedTo: chats(channel) });
    assert.deepEqual(await codes.placesOf(code), [String(channel.id)]);
    assert.ok((await pushed.of(String(channel.id), [5])).has(5));
  });

  t('an update that the network cannot help to judge does not keep the others from us', async () => {
    const bot = it.network.bot();
    const group = it.network.chat({ type: 'supergroup', admins: [11] });
    const [first, second] = [await minted(), await minted()];
    const broken = { kind: 'refuse', code: 502, description: 'Bad Gateway' } as const;
    it.network.arm('getChatMember', broken, broken);
    it.network.write(group, `/connect ${first}`, { id: 11 });
    await listen(bot, 'the code is read', drained(bot));
    assert.deepEqual(
      await codes.placesOf(first),
      [String(group.id)],
      'a network that comes back has not cost the code',
    );
    it.network.arm('getChatMember', broken, { kind: 'silent_before' }, broken);
    it.network.write(group, `/connect ${first}`, { id: 11 });
    it.network.write(group, `/connect ${second}`, { id: 11 });
    const began = performance.now();
    await listen(bot, 'both are read', drained(bot), { answerMs: 100 });
    assert.ok(performance.now() - began < 8_000, 'a silent network is left after its time');
    assert.deepEqual(await codes.placesOf(second), [String(group.id)]);
  });

  t('figures of connected chats are kept, and of no others', async () => {
    const bot = it.network.bot();
    const group = it.network.chat({ type: 'supergroup' });
    const channel = it.network.chat({ linkedId: group.id });
    const other = it.network.chat();
    const account = await it.account(channel, bot);
    // Its kinds are asked for before anything happens.
    await listen(bot, 'it listens', (states) => states.length > 0, { waitSeconds: 0 });
    const { outcome } = await it.publish(it.request(account));
    assert.ok(outcome.kind === 'published');
    const post = Number(outcome.externalId.split(':')[1]);
    const root = group.lastId;
    it.network.react(channel, post, { '👍': 3 });
    it.network.react(channel, post, { '👍': 14, '🔥': 1 });
    it.network.react(other, 5, { '👍': 3 });
    const strange = { chat: { id: group.id }, message_id: 7, is_automatic_forward: true };
    it.network.tell({ message: { ...strange, forward_origin: { chat: { id: other.id }, message_id: 6 } } });
    it.network.comment(group, root, 'Nice');
    it.network.comment(group, root, 'Very');
    it.network.write(group, 'Something else', { id: 12 });
    await listen(bot, 'all is kept', drained(bot), { connectedTo: chats(channel) });
    const figures = (await pushed.of(String(channel.id), [post])).get(post);
    assert.equal(figures?.comments, 2);
    const said = figures?.reactions as { readonly reactions: readonly { readonly total_count: number }[] };
    assert.deepEqual(
      said.reactions.map(({ total_count }) => total_count),
      [14, 1],
    );
    assert.ok(!JSON.stringify(said).includes(channel.title));
    assert.deepEqual(await pushed.of(String(other.id), [5, 6]), new Map());
  });

  t('a chat that the bot may no longer post to is told, as it is now and not as it was', async () => {
    const bot = it.network.bot();
    const [lost, back, stranger, mute] = [0, 1, 2, 3].map(() => it.network.chat()) as [Chat, Chat, Chat, Chat];
    for (const chat of [lost, back, stranger]) it.network.allow(chat, 'kicked');
    for (let at = 0; at < 20; at += 1) it.network.allow(back, at % 2 === 0 ? 'no_posts' : 'admin');
    const before = callsOf('getChat');
    it.network.allow(mute, 'no_posts');
    const losses = new Map<string, string | null | undefined>();
    await listen(bot, 'all is read', drained(bot), {
      connectedTo: chats(lost, back, mute),
      changed: async (id, check) => {
        losses.set(id, await check());
        return true;
      },
    });
    assert.match(String(losses.get(String(lost.id))), /not in this chat any more/);
    assert.match(String(losses.get(String(mute.id))), /right to post messages/);
    assert.equal(losses.get(String(back.id)), null);
    assert.equal(losses.size, 3);
    assert.equal(callsOf('getChat') - before, 3, 'one question a chat');
  });

  t('a loss that is not known now is asked for again', async () => {
    const bot = it.network.bot();
    const chat = it.network.chat();
    it.network.allow(chat, 'kicked');
    it.network.arm('getChat', { kind: 'refuse', code: 502, description: 'Bad Gateway' });
    const answers: unknown[] = [];
    await listen(bot, 'it is known', drained(bot), {
      connectedTo: chats(chat),
      changed: async (_, check) => {
        answers.push(await check());
        return answers.at(-1) !== undefined;
      },
    });
    assert.equal(answers.length, 2);
    assert.match(String(answers[1]), /not in this chat/);
  });

  t('a dead token ends the listening; a webhook and another listener are told, and asked again', async () => {
    const bot = it.network.bot();
    bot.isRevoked = true;
    const refused = await listen(bot, 'never', () => false);
    assert.deepEqual(refused, [{ kind: 'refused', reason: '401 Unauthorized' }]);
    bot.isRevoked = false;
    bot.hasWebhook = true;
    const hooked = await listen(
      bot,
      'it conflicts',
      (states) => {
        bot.hasWebhook = states.length < 2;
        return states.at(-1)?.kind === 'hearing';
      },
      { waitSeconds: 0 },
    );
    assert.match(JSON.stringify(hooked[0]), /"conflict".*webhook is active/);
    const first = listen(bot, 'another one listens', (states) => states.some(({ kind }) => kind === 'conflict'));
    await until('the first waits', () => bot.listener !== null);
    await listen(bot, 'the second takes over', async () => (await first).length > 0);
  });

  t('updates too long for one answer come in smaller ones', async () => {
    const bot = it.network.bot();
    const chat = it.network.chat({ type: 'supergroup' });
    const code = await minted();
    for (let at = 0; at < 99; at += 1) it.network.write(chat, '🦄'.repeat(2_048).repeat(2), { id: 12 });
    it.network.write(it.network.chat(), `/connect ${code}`);
    const long = JSON.stringify(bot.updates);
    assert.ok(Buffer.byteLength(long) > 1 << 20, `${Buffer.byteLength(long)}`);
    await listen(bot, 'all is read', drained(bot));
    assert.equal((await codes.placesOf(code))?.length, 1);
  });

  t('whatever an update holds, the next one is read', async () => {
    const bot = it.network.bot();
    const channel = it.network.chat();
    const code = await minted();
    const odd: readonly unknown[] = [
      ...[null, 7, 'x', [], {}, { chat: null }, { chat: { id: 'x' } }, { chat: { id: 1e300 }, message_id: 1 }],
      { chat: { id: channel.id }, message_id: 5, date: 9e15, reactions: [{ type: 'x\0\ud800', total_count: 1 }] },
      { chat: { id: channel.id }, message_id: 6, date: 1, reactions: 'x'.repeat(20_000) },
      { chat: { id: channel.id }, message_id: 8, date: 1, reactions: ['x'.repeat(20_000)] },
      { chat: { id: channel.id }, message_id: 9e15, message_thread_id: -9e15, text: '/connect \0' },
      {
        chat: { id: channel.id },
        message_id: 7,
        is_automatic_forward: true,
        forward_origin: { chat: { id: channel.id }, message_id: 9e15 },
      },
    ];
    let id = 900_000;
    for (const one of odd) {
      for (const kind of ['message', 'channel_post', 'my_chat_member', 'message_reaction_count']) {
        id += 1;
        bot.updates.push({ update_id: id, [kind]: one });
      }
    }
    bot.updates.push({ update_id: id + 1, channel_post: { chat: { id: channel.id }, text: `/connect ${code}` } });
    const states = await listen(bot, 'all is read', drained(bot), { connectedTo: chats(channel) });
    assert.ok(states.every(({ kind }) => kind === 'hearing'));
    assert.equal((await codes.placesOf(code))?.length, 1);
    const kept = await pushed.of(String(channel.id), [5, 6, 8]);
    assert.deepEqual([...kept.keys()], [5], 'a message has a dozen kinds of reactions, not a book of them');
  });

  t('a network that names no wait is asked again after a second, not at once', async () => {
    const bot = it.network.bot();
    const limited = {
      kind: 'refuse',
      code: 429,
      description: 'Too Many Requests',
      parameters: { retry_after: 0 },
    } as const;
    it.network.arm('getUpdates', limited);
    const at: number[] = [];
    const state = () => void at.push(performance.now());
    await listen(bot, 'it hears again', () => at.length > 1, { state, waitSeconds: 0 });
    const [refused = 0, askedAgain = 0] = at;
    assert.ok(askedAgain - refused >= 990, `${askedAgain - refused} ms`);
  });
});
