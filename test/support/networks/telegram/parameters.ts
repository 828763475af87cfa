/** The parameters of each method (core.telegram.org/bots/api, Bot API 10), with their types. */
export type Kind = 'chat' | 'text' | 'integer' | 'boolean' | 'file' | 'json' | 'mode';

export interface Parameter {
  readonly kind: Kind;
  readonly required?: true;
}

const required = (kind: Kind): Parameter => ({ kind, required: true });
const optional = (kind: Kind): Parameter => ({ kind });

const chat = { chat_id: required('chat') };
const send = {
  ...chat,
  message_thread_id: optional('integer'),
  disable_notification: optional('boolean'),
  protect_content: optional('boolean'),
  reply_parameters: optional('json'),
};
const caption = {
  caption: optional('text'),
  parse_mode: optional('mode'),
  caption_entities: optional('json'),
};
const above = { has_spoiler: optional('boolean'), show_caption_above_media: optional('boolean') };
const film = { duration: optional('integer'), width: optional('integer'), height: optional('integer') };

export const methods: Readonly<Record<string, Readonly<Record<string, Parameter>>>> = {
  getMe: {},
  getWebhookInfo: {},
  getChat: chat,
  getChatMember: { ...chat, user_id: required('integer') },
  getChatMemberCount: chat,
  deleteMessage: { ...chat, message_id: required('integer') },
  getUpdates: {
    offset: optional('integer'),
    limit: optional('integer'),
    timeout: optional('integer'),
    allowed_updates: optional('json'),
  },
  sendMessage: {
    ...send,
    text: required('text'),
    parse_mode: optional('mode'),
    entities: optional('json'),
    link_preview_options: optional('json'),
  },
  sendPhoto: { ...send, ...caption, ...above, photo: required('file') },
  sendVideo: {
    ...{ ...send, ...caption, ...above, ...film, video: required('file') },
    ...{ cover: optional('file'), thumbnail: optional('file'), start_timestamp: optional('integer') },
    supports_streaming: optional('boolean'),
  },
  sendAnimation: { ...send, ...caption, ...above, ...film, animation: required('file'), thumbnail: optional('file') },
  sendDocument: {
    ...{ ...send, ...caption, document: required('file'), thumbnail: optional('file') },
    disable_content_type_detection: optional('boolean'),
  },
  sendMediaGroup: { ...send, media: required('json') },
};

export const itemMembers: Readonly<Record<string, readonly string[]>> = {
  photo: ['type', 'media', 'caption', 'parse_mode', 'caption_entities', 'show_caption_above_media', 'has_spoiler'],
  video: [
    ...['type', 'media', 'caption', 'parse_mode', 'caption_entities', 'show_caption_above_media', 'has_spoiler'],
    ...['thumbnail', 'cover', 'start_timestamp', 'width', 'height', 'duration', 'supports_streaming'],
  ],
  document: [
    'type',
    'media',
    'thumbnail',
    'caption',
    'parse_mode',
    'caption_entities',
    'disable_content_type_detection',
  ],
};

/** @param isTyped whether the form of the request keeps types */
export const wrongKind = (kind: Kind, value: unknown, isTyped: boolean): boolean => {
  switch (kind) {
    case 'text':
      return typeof value !== 'string';
    case 'mode':
      return !['MarkdownV2', 'HTML', 'Markdown'].includes(String(value));
    case 'chat':
      return !/^(-?\d{1,16}|@\w{4,32})$/.test(String(value));
    case 'integer':
      return isTyped ? !Number.isInteger(value) : !/^-?\d{1,16}$/.test(String(value));
    case 'boolean':
      return isTyped ? typeof value !== 'boolean' : !/^(true|false|1|0)$/i.test(String(value));
    case 'json':
      return isTyped ? typeof value !== 'object' || value === null : !/^[[{]/.test(String(value));
    case 'file':
      return typeof value !== 'string' || value === '';
  }
};
