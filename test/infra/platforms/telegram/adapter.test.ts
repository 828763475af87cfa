import assert from 'node:assert/strict';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';

import { TelegramAdapter } from '#infra/platforms/telegram/index.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import type { SeenCall } from '#runtime/egress/seen-call.ts';
import type { ObservedWindow } from '#schemas/cadence.ts';
import type { Fault } from '#test/support/networks/telegram/faults.ts';
import { freePort } from '#test/support/port.ts';
import { suite } from '#test/support/suite.ts';
import { boundaryDeadlineMs, file, telegramWorld } from './world.ts';

suite('telegram', (t) => {
  let it: Awaited<ReturnType<typeof telegramWorld>>;
  t.before(async () => {
    it = await telegramWorld();
  });
  t.after(() => it?.network.close());
  const fresh = async (chat = it.network.chat()) => {
    const bot = it.network.bot();
    return { bot, chat, account: await it.account(chat, bot) };
  };
  const refuse = (code: number, description: string): Fault => ({ kind: 'refuse', code, description });

  t('each refusal has its category, and makes nothing', async () => {
    const table = [
      [401, 'Unauthorized', 'reauth_required'],
      [401, 'Unauthorized: invalid token specified', 'reauth_required'],
      [404, 'Not Found', 'reauth_required'],
      [403, 'Forbidden: bot was kicked from the channel chat', 'permission'],
      [403, 'Forbidden: bot is not a member of the supergroup chat', 'permission'],
      [403, 'Forbidden: bot was blocked by the user', 'permission'],
      [403, 'Forbidden: user is deactivated', 'permission'],
      [403, 'Forbidden: the group chat was deleted', 'permission'],
      [400, 'Bad Request: chat not found', 'permission'],
      [400, 'Bad Request: chat_id is empty', 'permission'],
      [400, 'Bad Request: PEER_ID_INVALID', 'permission'],
      [400, 'Bad Request: CHANNEL_PRIVATE', 'permission'],
      [400, 'Bad Request: need administrator rights in the channel chat', 'permission'],
      [400, 'Bad Request: not enough rights to send photos to the chat', 'permission'],
      [400, 'Bad Request: CHAT_ADMIN_REQUIRED', 'permission'],
      [400, 'Bad Request: CHAT_WRITE_FORBIDDEN', 'permission'],
      [400, 'Bad Request: CHAT_SEND_PHOTOS_FORBIDDEN', 'permission'],
      [400, 'Bad Request: TOPIC_CLOSED', 'permission'],
      [400, "Bad Request: can't parse entities: unexpected end", 'invalid_content'],
      [400, 'Bad Request: message text is empty', 'invalid_content'],
      [400, 'Bad Request: message is too long', 'invalid_content'],
      [400, 'Bad Request: message caption is too long', 'invalid_content'],
      [400, 'Bad Request: text is too long', 'invalid_content'],
      [400, 'Bad Request: MEDIA_CAPTION_TOO_LONG', 'invalid_content'],
      [400, 'Bad Request: message to be replied not found', 'invalid_content'],
      [400, 'Bad Request: message thread not found', 'invalid_content'],
      [400, 'Bad Request: wrong file identifier/HTTP URL specified', 'media'],
      [400, 'Bad Request: PHOTO_INVALID_DIMENSIONS', 'media'],
      [400, 'Bad Request: IMAGE_PROCESS_FAILED', 'media'],
      [400, 'Bad Request: PHOTO_EXT_INVALID', 'media'],
      [400, 'Bad Request: VIDEO_FILE_INVALID', 'media'],
      [400, 'Bad Request: MEDIA_EMPTY', 'media'],
      [400, 'Bad Request: file is too big', 'media'],
      [413, 'Request Entity Too Large', 'media'],
      [400, 'Bad Request: words of next year', 'invalid_content'],
      [409, 'Conflict: can’t use getUpdates while webhook is active', 'transient'],
      [421, 'Misdirected Request', 'transient'],
    ] as const;
    const { account } = await fresh();
    for (const [code, description, category] of table) {
      it.network.arm('sendMessage', refuse(code, description));
      const asked = it.request(account);
      const { outcome } = await it.publish(asked);
      // What may pass is tried again: a refusal has made nothing.
      const kind = category === 'transient' ? 'nothing_sent' : 'failed';
      assert.ok(outcome.kind === kind, `${description}: ${outcome.kind}`);
      const { failure } = outcome;
      assert.equal(failure.category, category, description);
      assert.equal(failure.platformCode, String(code));
      assert.equal(failure.platformMessage, description);
      assert.deepEqual(it.network.made(asked.targetId), []);
    }
  });

  t('a call that ends without an answer is unknown, and is made once', async () => {
    const table: readonly (readonly [Fault, number])[] = [
      [{ kind: 'drop_after' }, 1],
      [{ kind: 'drop_before' }, 0],
      [{ kind: 'silent_after' }, 1],
      [{ kind: 'error_after' }, 1],
      [refuse(500, 'Internal Server Error'), 0],
      [refuse(502, 'Bad Gateway'), 0],
      [refuse(504, 'Gateway Timeout'), 0],
    ];
    const { account } = await fresh();
    await Promise.all(
      table.map(async ([fault, made]) => {
        const one = await telegramWorld();
        const own = await one.account(one.network.chat(), one.network.bot());
        one.network.arm('sendMessage', fault);
        const asked = one.request(own);
        const { outcome, steps } = await one.publish(asked);
        assert.equal(outcome.kind, 'unknown', JSON.stringify(fault));
        assert.equal(one.network.made(asked.targetId).length, made);
        assert.equal(one.network.calls.filter(({ method }) => method === 'sendMessage').length, 1);
        const seen = await one.adapter.reconcile();
        assert.ok(seen.kind === 'undecided' && /shows a bot none/.test(seen.failure?.platformMessage ?? ''));
        assert.equal(steps.log.at(-1), 'boundary');
        one.network.close();
      }),
    );
    it.network.arm('sendMessage', { kind: 'delay', ms: 200 });
    assert.equal((await it.publish(it.request(account))).outcome.kind, 'published');
  });

  t('a network that is down, a dead token and a lost chat are known before the boundary', async () => {
    const { account, chat, bot } = await fresh();
    const away = new TelegramAdapter({ ...it.options, api: `http://127.0.0.1:${await freePort()}` });
    const look = async (by?: TelegramAdapter) => {
      const { outcome, steps } = await it.publish(it.request(account), by);
      assert.deepEqual(steps.log, []);
      return [outcome.kind, 'failure' in outcome ? outcome.failure.category : ''];
    };
    assert.deepEqual(await look(away), ['deferred', 'platform_down']);
    it.network.arm('getChat', refuse(500, 'Internal Server Error'));
    assert.deepEqual(await look(), ['deferred', 'platform_down']);
    chat.rights = 'kicked';
    assert.deepEqual(await look(), ['failed', 'permission']);
    bot.isRevoked = true;
    assert.deepEqual(await look(), ['failed', 'reauth_required']);
  });

  t('a rate limit of the chat and one of the token name their time', async () => {
    const { account, chat, bot } = await fresh();
    const reported: [string, readonly ObservedWindow[]][] = [];
    const onLimits = (accountId: string, windows: readonly ObservedWindow[]) => reported.push([accountId, windows]);
    const telling = new TelegramAdapter({ ...it.options, onLimits });
    const soon = async () => {
      const { outcome } = await it.publish(it.request(account), telling);
      assert.ok(outcome.kind === 'rate_limited', JSON.stringify(outcome));
      const wait = Date.parse(outcome.retryAt) - Date.now();
      assert.ok(wait > 15_000 && wait <= 17_000, String(wait));
      const [[accountId, [window]] = ['', []], ...more] = reported.splice(0);
      assert.deepEqual([accountId, more], [account.id, []], 'the chat rests as a whole');
      assert.deepEqual([window?.seconds, window?.used], [60, window?.limit]);
      assert.ok(Math.abs(Date.parse(window?.resetsAt ?? '') - Date.parse(outcome.retryAt)) < 1_000);
    };
    chat.quietUntil = Date.now() + 17_000;
    await soon();
    chat.quietUntil = 0;
    bot.quietUntil = Date.now() + 17_000;
    await soon();
    bot.quietUntil = 0;
    assert.equal((await it.publish(it.request(account), telling)).outcome.kind, 'published');
    assert.deepEqual(reported, [], 'an answer without a wait says nothing');
  });

  t('a group that became a supergroup is followed, once, and its new number is kept', async () => {
    const chat = it.network.chat({ type: 'group', id: -4_567_890 });
    const { account } = await fresh(chat);
    const to = it.network.chat({ type: 'supergroup' });
    chat.movedTo = to.id;
    const asked = it.request(account);
    const { outcome } = await it.publish(asked);
    assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
    assert.equal(outcome.externalId, `${to.id}:${to.lastId}`);
    assert.equal(it.network.made(asked.targetId).length, 1);
    assert.equal((await it.credentials.read(account.id))?.secret.chatId, String(to.id));
    const loop = it.network.chat({ type: 'group', id: -4_567_891 });
    loop.movedTo = loop.id;
    const again = it.request((await fresh(loop)).account);
    const turned = (await it.publish(again)).outcome;
    assert.equal(turned.kind, 'nothing_sent');
    assert.deepEqual(it.network.made(again.targetId), []);
  });

  t('public, private and basic chats have their addresses', async () => {
    const link = async (over: Parameters<typeof it.network.chat>[0]) => {
      const chat = it.network.chat(over);
      const { outcome } = await it.publish(it.request((await fresh(chat)).account));
      assert.ok(outcome.kind === 'published');
      return outcome.permalink;
    };
    assert.equal(await link({ username: 'acme_pub' }), 'https://t.me/acme_pub/501');
    assert.equal(await link({ id: -1_009_999_000_001 }), 'https://t.me/c/9999000001/501');
    assert.equal(await link({ type: 'group', id: -77 }), null);
  });

  t('an album is one post; an album that is partly out is unknown', async () => {
    const { account } = await fresh();
    const media = () => [file('image', 'one'), file('video', 'two'), file('image', 'three')];
    const whole = it.request(account, { media: media() });
    const { outcome, steps } = await it.publish(whole);
    const made = it.network.made(whole.targetId);
    assert.ok(outcome.kind === 'published');
    assert.equal(outcome.externalId, `${made[0]?.chatId}:${made[0]?.messageId}`);
    assert.equal(new Set(made.map(({ albumId }) => albumId)).size, 1);
    assert.deepEqual(
      made.map(({ text }) => text),
      ['Good morning', '', ''],
    );
    assert.ok(steps.bytes > 'onetwothree'.length);
    it.network.arm('sendMediaGroup', { kind: 'partial', out: 2 });
    const part = it.request(account, { media: media() });
    const second = (await it.publish(part)).outcome;
    assert.ok(second.kind === 'unknown' && /part of the album/.test(second.failure.platformMessage ?? ''));
    assert.equal(it.network.made(part.targetId).length, 2);
  });

  t('a text over 1,024 follows its media; where it is lost, the post is unknown and says what is out', async () => {
    const { account } = await fresh();
    const over = { content: 'b'.repeat(1_025), media: [file('image', 'one')] };
    const asked = it.request(account, over);
    const { outcome } = await it.publish(asked);
    const made = it.network.made(asked.targetId);
    assert.deepEqual(
      made.map(({ method }) => method),
      ['sendPhoto', 'sendMessage'],
    );
    assert.ok(outcome.kind === 'published' && outcome.externalId.endsWith(`:${made[0]?.messageId}`));
    it.network.arm('sendMessage', refuse(429, 'Too Many Requests: retry after 3'));
    const lost = (await it.publish(it.request(account, over))).outcome;
    assert.ok(lost.kind === 'unknown' && /the media are out \(https:/.test(lost.failure.platformMessage ?? ''));
  });

  t('markup that Telegram refuses costs no call', async () => {
    const { account } = await fresh();
    const table = [
      ['MarkdownV2', 'A word.', "'.' at character 7 is reserved"],
      ['MarkdownV2', 'A *word', 'bold that begins at character 3'],
      ['MarkdownV2', 'a `b', 'code that begins'],
      ['MarkdownV2', '*a _b* c_', 'inside another'],
      ['HTML', 'a < b', "'<' at character 3"],
      ['HTML', '<b>a', '<b> does not end'],
      ['HTML', '<b><i>a</b></i>', 'innermost'],
      ['HTML', '<h1>a</h1>', 'knows no tag <h1>'],
      ['Markdown', 'a_b', 'does not end'],
    ] as const;
    for (const [parseMode, content, words] of table) {
      const calls = it.network.calls.length;
      const { outcome } = await it.publish(it.request(account, { content, overrides: { parseMode } }));
      assert.ok(outcome.kind === 'failed' && outcome.failure.category === 'invalid_content', content);
      assert.ok(outcome.failure.platformMessage?.includes(words), `${content}: ${outcome.failure.platformMessage}`);
      assert.equal(it.network.calls.length, calls);
    }
  });

  t('markup that the check lets through, the network takes too', async () => {
    const { account } = await fresh();
    const table = [
      ['MarkdownV2', '*a _b ~c~_* __d__ ||e|| `f.g` ```js\nh.i\n``` [j\\.k](https://e.com/a.b) \\!'],
      ['MarkdownV2', '>quote\n>more\nafter'],
      ['MarkdownV2', '**>quote\n>the last line||'],
      [
        'HTML',
        '<b>a <i>b</i></b> <a href="https://e.com/?a=1&amp;b">c</a> <span class="tg-spoiler">d</span> &lt; &amp; e',
      ],
      ['Markdown', '*a* _b_ `c_d` [e](https://e.com/a_b) \\_'],
    ] as const;
    for (const [parseMode, content] of table) {
      const { outcome } = await it.publish(it.request(account, { content, overrides: { parseMode } }));
      assert.equal(outcome.kind, 'published', `${content}: ${JSON.stringify(outcome)}`);
    }
  });

  t('an account without a bot and a chat must be connected again', async () => {
    const { account } = await fresh();
    await it.credentials.destroy(account.id);
    const asked = it.request(account);
    const steps = new RecordedSteps(asked, boundaryDeadlineMs);
    const outcome = await it.adapter.publish(asked, steps);
    assert.ok(outcome.kind === 'failed' && outcome.failure.category === 'reauth_required');
  });

  t('a call that finds nobody after the boundary sent nothing, and says so', async () => {
    const one = await telegramWorld();
    const own = await one.account(one.network.chat(), one.network.bot());
    const asked = one.request(own);
    const steps = new RecordedSteps(asked, boundaryDeadlineMs);
    steps.atBoundary = () => one.network.close();
    const outcome = await one.adapter.publish(asked, steps);
    assert.ok(outcome.kind === 'nothing_sent', JSON.stringify(outcome));
    assert.deepEqual([outcome.failure.category, outcome.failure.retryable], ['platform_down', true]);
  });

  t('the token stands in no report of a call and in no outcome', async () => {
    const { account, bot } = await fresh();
    const seen: SeenCall[] = [];
    const guard = new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] });
    const http = new GuardedNetworkHttp(guard, { report: (one) => void seen.push(one) });
    const by = new TelegramAdapter({ ...it.options, http });
    const outcomes = [await it.publish(it.request(account, { media: [file('image', 'one')] }), by)];
    bot.isRevoked = true;
    outcomes.push(await it.publish(it.request(account), by));
    assert.deepEqual(
      seen.map(({ path }) => path),
      ['/bot…/getChat', '/bot…/sendPhoto', '/bot…/getChat'],
    );
    const [, secret = ''] = bot.token.split(':');
    assert.ok(!JSON.stringify([seen, outcomes.map(({ outcome }) => outcome)]).includes(secret));
  });

  t("the operator's bot posts by the token of the configuration, also by a new one", async () => {
    const bot = it.network.bot();
    const account = await it.account(it.network.chat(), null);
    const look = async (operatorToken: string | null) => {
      const by = new TelegramAdapter({ ...it.options, operatorToken });
      const { outcome, steps } = await it.publish(it.request(account), by);
      return { by, outcome, log: steps.log };
    };
    assert.equal((await look(bot.token)).outcome.kind, 'published');
    for (const wrong of [null, '1:gone']) {
      // Every account has this bot: its token is the operator's to mend, and the posts go out then.
      const { by, outcome, log } = await look(wrong);
      assert.ok(outcome.kind === 'deferred', JSON.stringify(outcome));
      assert.deepEqual([outcome.failure.category, outcome.failure.actor], ['transient', 'service']);
      assert.deepEqual(log, []);
      const below = { targetId: account.id, platform: 'telegram', account, content: 'Hi' } as const;
      const request = { ...below, externalId: `${account.externalId}:1` };
      const commented = await by.comment(request, new AbortController().signal);
      assert.equal(commented.kind, 'deferred');
    }
    it.network.arm('sendMessage', refuse(401, 'Unauthorized'));
    const { outcome } = await look(bot.token);
    assert.ok(outcome.kind === 'nothing_sent');
    assert.deepEqual([outcome.failure.category, outcome.failure.actor], ['transient', 'service']);
    const rotated = it.network.bot();
    bot.isRevoked = true;
    assert.equal((await look(rotated.token)).outcome.kind, 'published');
  });

  t('a comment goes below posts of its own chat only', async () => {
    const { account } = await fresh();
    const other = await fresh();
    const published = (await it.publish(it.request(other.account))).outcome;
    assert.ok(published.kind === 'published');
    const { externalId } = published;
    const asked = { targetId: 'a target', platform: 'telegram', account, content: 'Hi', externalId } as const;
    const outcome = await it.adapter.comment(asked, AbortSignal.timeout(2_000));
    assert.equal(outcome.kind, 'failed');
    assert.deepEqual(it.network.made(asked.targetId), []);
  });
});
