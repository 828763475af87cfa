import { leisure } from '#domain/platforms/prior-times.ts';
import type { NetworkRules } from '#domain/platforms/rules.ts';
import { insights } from './insights.ts';
import { media } from './media.ts';
import { shownText } from './text.ts';

/** Telegram, Bot API. Figures: core.telegram.org/bots/api, "sendMessage", "Formatting options"; the server's own source. */
export const telegram: NetworkRules = {
  platform: 'telegram',
  name: 'Telegram',
  text: {
    // A caption over 1,024 units is sent as a message of its own after the media, so the message limit is the limit.
    limits: [
      { unit: 'parsed_utf16_units', limit: 4096 },
      { unit: 'utf8_bytes', limit: 32_768 },
    ],
    shown: (text, { parseMode }) => shownText(text, parseMode),
    note: '4,096 UTF-16 units after the markup of parseMode is taken out; the raw text at most 32 KiB.',
  },
  media,
  altTexts: [],
  capabilities: {
    thread: false,
    firstComment: true,
    native: false,
    textOnly: true,
    altText: false,
    cover: true,
    aiLabel: false,
  },
  nativeWindow: null,
  publish: {
    // A bot cannot read the chat back: a linked discussion group can show that a post is there, nothing that it is not.
    handle: 'none',
    absenceIsProof: false,
    readsBack: 'evidence',
    listsOwnPosts: false,
    settleWindowMs: 600_000,
    permalinks: ['https://t.me/{username}/{code}', 'https://t.me/c/{account}/{code}'],
  },
  overrides: {
    parseMode: {
      about: 'How markup in the text is read. Absent: the text has no markup.',
      type: 'enum',
      values: ['MarkdownV2', 'HTML', 'Markdown'],
    },
    disableNotification: { about: 'Sends the message without a sound.', type: 'boolean', default: false },
    protectContent: { about: 'Forbids forwarding and saving.', type: 'boolean', default: false },
    firstComment: {
      about:
        'A reply to the published message in the same chat. If it fails, the message stays published and `firstCommentIssue` says why.',
      type: 'comment',
      asPost: true,
    },
  },
  banned: [],
  aiKey: null,
  insights,
  priorTimes: leisure,
};
