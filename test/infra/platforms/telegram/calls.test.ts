/** What goes out, byte for byte, for every override key and kind of media: `calls.txt`. With UPDATE_CALLS=1 it is written. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { PublishRequest } from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { suite } from '#test/support/suite.ts';
import { file, telegramWorld } from './world.ts';

const image = () => file('image', 'JPEG');
const video = () => file('video', 'MP4');
const cover = () => file('image', 'COVER', { use: 'cover' });
const long = 'a'.repeat(1_025);

const cases: Readonly<Record<string, () => Partial<PublishRequest>>> = {
  'text alone': () => ({}),
  'parseMode MarkdownV2': () => ({ content: 'A *bold* word\\.', overrides: { parseMode: 'MarkdownV2' } }),
  'parseMode HTML': () => ({ content: 'A <b>bold</b> word.', overrides: { parseMode: 'HTML' } }),
  'parseMode Markdown': () => ({ content: 'A *bold* word.', overrides: { parseMode: 'Markdown' } }),
  disableNotification: () => ({ overrides: { disableNotification: true } }),
  'disableNotification false, protectContent false': () => ({
    overrides: { disableNotification: false, protectContent: false },
  }),
  protectContent: () => ({ overrides: { protectContent: true } }),
  'an unknown key': () => ({ overrides: { disableLinkPreview: true } }),
  'one photo, its alt text left out': () => ({ media: [image()] }),
  'one photo without a text': () => ({ content: '', media: [image()] }),
  'one photo with every key': () => ({
    content: '<i>Hi</i>',
    media: [image()],
    overrides: { parseMode: 'HTML', disableNotification: true, protectContent: true },
  }),
  'one photo with a text over 1,024': () => ({ content: long, media: [image()] }),
  'one video': () => ({ media: [video()] }),
  'one video with a cover': () => ({ media: [video()], cover: cover() }),
  'one animation': () => ({ media: [file('gif', 'GIF')] }),
  'one document': () => ({ media: [file('document', 'PDF')] }),
  'an album of a photo and a video with a cover': () => ({
    content: '*Two*',
    media: [image(), video()],
    cover: cover(),
    overrides: { parseMode: 'MarkdownV2', protectContent: true },
  }),
  'an album with a text over 1,024': () => ({ content: long, media: [image(), image()] }),
  'an album of documents': () => ({ media: [file('document', 'ONE'), file('document', 'TWO')] }),
};

const place = path.join(import.meta.dirname, 'calls.txt');

suite('calls of telegram', (t) => {
  t('the exact calls stand in calls.txt', async () => {
    const it = await telegramWorld();
    try {
      const bot = it.network.bot();
      const account = await it.account(it.network.chat({ id: -1_001_234_567_890 }), bot);
      const blocks: string[] = [];
      const record = (name: string, from: number): void => {
        const calls = it.network.calls.slice(from).map(({ method, contentType, body }) => {
          const text = body
            .toString('utf8')
            .replaceAll(long, `${'a'.repeat(8)}… (1,025)`)
            .replaceAll('\r\n', '\n');
          return `POST /bot…/${method}\n${contentType}\n\n${text.trimEnd()}`;
        });
        blocks.push(`=== ${name}\n\n${calls.join('\n\n')}`);
      };
      let externalId = '';
      for (const [name, over] of Object.entries(cases)) {
        const from = it.network.calls.length;
        const { outcome } = await it.publish(it.request(account, over()));
        assert.ok(outcome.kind === 'published', `${name}: ${JSON.stringify(outcome)}`);
        externalId ||= outcome.externalId;
        record(name, from);
      }
      const from = it.network.calls.length;
      const comment = { targetId: 'a target', platform: 'telegram', account, externalId, content: 'First_' } as const;
      assert.equal((await it.adapter.comment(comment, AbortSignal.timeout(5_000))).kind, 'posted');
      record('firstComment, a call of its own', from);
      const all = `${blocks.join('\n\n')}\n`;
      if (process.env.UPDATE_CALLS === '1') writeFileSync(place, all);
      assert.equal(all, readFileSync(place, 'utf8'));
    } finally {
      it.network.close();
    }
  });

  t('every override key has a case', () => {
    const names = [...Object.keys(cases), 'firstComment'].join('\n');
    for (const key of Object.keys(rulesOf('telegram').overrides)) assert.ok(names.includes(key), key);
  });
});
