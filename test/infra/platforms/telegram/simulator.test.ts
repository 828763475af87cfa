/** The simulated network is as strict as the documents: what it let through would be refused by the real one. */
import assert from 'node:assert/strict';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import { suite } from '#test/support/suite.ts';

interface Answer {
  readonly ok: boolean;
  readonly error_code?: number;
  readonly description?: string;
  // biome-ignore lint/suspicious/noExplicitAny: the answer of another's program
  readonly result?: any;
}

suite('the simulator of telegram', (t) => {
  let network: TelegramSimulator;
  t.before(async () => {
    network = await TelegramSimulator.start();
  });
  t.after(() => network?.close());

  const call = async (token: string, method: string, body?: object | URLSearchParams | FormData): Promise<Answer> => {
    const isPlain = body !== undefined && !(body instanceof URLSearchParams) && !(body instanceof FormData);
    const answer = await fetch(`${network.origin}/bot${token}/${method}`, {
      method: 'POST',
      ...(body === undefined ? {} : { body: isPlain ? JSON.stringify(body) : (body as FormData) }),
      ...(isPlain ? { headers: { 'content-type': 'application/json' } } : {}),
    });
    const said = (await answer.json()) as Answer;
    assert.equal(answer.status, said.ok ? 200 : said.error_code);
    return said;
  };
  const form = (fields: Readonly<Record<string, string | Blob>>): FormData => {
    const made = new FormData();
    for (const [name, value] of Object.entries(fields)) {
      if (typeof value === 'string') made.set(name, value);
      else made.set(name, value, `${name}.jpg`);
    }
    return made;
  };

  t('takes three forms of a request, and methods in any case', async () => {
    const [{ token }, { id }] = [network.bot(), network.chat()];
    const ids = [
      await call(token, 'sendMessage', { chat_id: id, text: 'Hi' }),
      await call(token, 'SENDMESSAGE', new URLSearchParams({ chat_id: String(id), text: 'Hi' })),
      await call(token, 'sendmessage', form({ chat_id: String(id), text: 'Hi' })),
    ].map(({ result }) => result.message_id);
    assert.deepEqual(ids, [501, 502, 503]);
  });

  t('refuses what the documents do not name, and wrong types', async () => {
    const [{ token }, { id: chat_id }] = [network.bot(), network.chat()];
    const table: readonly (readonly [string, object, RegExp])[] = [
      ['sendMessage', { chat_id, text: 'Hi', disable_web_page_preview: true }, /unknown parameter/],
      ['sendMessage', { chat_id, text: 'Hi', protect_content: 'true' }, /wrong type/],
      ['sendMessage', { chat_id, text: 7 }, /wrong type/],
      ['sendMessage', { chat_id, text: 'Hi', parse_mode: 'markdown2' }, /wrong type/],
      ['sendMessage', { text: 'Hi' }, /chat_id is empty/],
      ['sendMessage', { chat_id, text: '   ' }, /text is empty/],
      ['sendMessage', { chat_id, text: 'a'.repeat(4_097) }, /too long/],
      ['sendMessage', { chat_id, text: 'é'.repeat(16_385) }, /text is too long/],
      ['sendMessage', { chat_id, text: 'a.', parse_mode: 'MarkdownV2' }, /'\.' is reserved/],
      ['sendMessage', { chat_id, text: '<h1>a</h1>', parse_mode: 'HTML' }, /Unsupported start tag/],
      ['sendMessage', { chat_id, text: '*a', parse_mode: 'Markdown' }, /Can't find end/],
      ['sendMessage', { chat_id, text: 'Hi', reply_parameters: { message_id: 9 } }, /replied not found/],
      ['sendMessage', { chat_id: 5, text: 'Hi' }, /chat not found/],
      ['sendPhoto', { chat_id, photo: 'nothing' }, /wrong file identifier/],
      ['sendMediaGroup', { chat_id, media: [{ type: 'photo', media: 'attach://a' }] }, /2 to 10/],
    ];
    for (const [method, body, words] of table) {
      const { ok, description } = await call(token, method, body);
      assert.ok(!ok);
      assert.match(description ?? '', words);
    }
    assert.equal((await call('1:gone', 'getMe')).error_code, 401);
    assert.equal((await call(token, 'sendNothing')).error_code, 404);
    assert.deepEqual(
      network.ledger.filter(({ chatId }) => chatId === chat_id),
      [],
    );
  });

  t('counts a text after its markup', async () => {
    const [{ token }, { id: chat_id }] = [network.bot(), network.chat()];
    const text = `<b>${'a'.repeat(4_096)}</b>`;
    assert.ok((await call(token, 'sendMessage', { chat_id, text, parse_mode: 'HTML' })).ok);
  });

  t('stores a file, and sends it again by its id', async () => {
    const [{ token }, { id }] = [network.bot(), network.chat()];
    const photo = new Blob(['JPEG']);
    const first = await call(token, 'sendPhoto', form({ chat_id: String(id), photo }));
    const { file_id } = first.result.photo[0];
    const again = await call(token, 'sendPhoto', { chat_id: id, photo: file_id });
    assert.equal(again.result.photo[0].file_id, file_id);
    const album = await call(token, 'sendMediaGroup', {
      chat_id: id,
      media: [
        { type: 'photo', media: file_id },
        { type: 'photo', media: file_id },
      ],
    });
    assert.equal(new Set(album.result.map(({ media_group_id }: { media_group_id: string }) => media_group_id)).size, 1);
    const unused = await call(token, 'sendPhoto', form({ chat_id: String(id), photo, other: photo }));
    assert.match(unused.description ?? '', /unused part/);
  });

  t('tells of posts in the group of discussions, once to one listener', async () => {
    const { token } = network.bot();
    const group = network.chat({ type: 'supergroup' });
    const { id: chat_id } = network.chat({ linkedId: group.id });
    const first = call(token, 'getUpdates', { timeout: 30 });
    // The second listener is let in as soon as the first one waits.
    const second = new Promise<Answer>((resolve) => {
      const look = (): void => {
        if (network.calls.at(-1)?.method !== 'getUpdates') return void setImmediate(look);
        resolve(call(token, 'getUpdates', { timeout: 30 }));
      };
      look();
    });
    assert.equal((await first).error_code, 409);
    const { result: post } = await call(token, 'sendMessage', { chat_id, text: 'Hi' });
    const { result: updates } = await second;
    const { message, update_id } = updates[0];
    assert.equal(message.chat.id, group.id);
    assert.equal(message.is_automatic_forward, true);
    assert.equal(message.forward_origin.message_id, post.message_id);
    const { result: rest } = await call(token, 'getUpdates', { offset: update_id + 1 });
    assert.deepEqual(rest, []);
  });
});
