/** What the simulated network holds. */
import type { Upload } from './form.ts';

export interface Chat {
  id: number;
  readonly type: 'channel' | 'supergroup' | 'group';
  readonly title: string;
  readonly username?: string;
  /** The group of a channel's discussions. */
  readonly linkedId?: number;
  lastId: number;
  readonly messages: Map<number, Made>;
  /** Of the bot. */
  rights: 'admin' | 'no_posts' | 'member' | 'kicked';
  movedTo: number | null;
  /** Milliseconds since the epoch, before which it refuses. */
  quietUntil: number;
  members: number;
  /** Ids of people. */
  admins: readonly number[];
}

export interface Bot {
  readonly id: number;
  readonly token: string;
  readonly username: string;
  isRevoked: boolean;
  quietUntil: number;
  /** Kinds that its last listener asked for; null: those that the network gives unasked. */
  allowed: readonly string[] | null;
  /** Its updates go to an address, and to no listener. */
  hasWebhook: boolean;
  /** People may add it to groups. */
  joinsGroups: boolean;
  readonly updates: { readonly update_id: number; readonly [name: string]: unknown }[];
  /** Of whoever waits for updates. */
  listener: ((isConflict: boolean) => void) | null;
}

/** A message that a bot made. */
export interface Made {
  readonly chatId: number;
  readonly messageId: number;
  readonly method: string;
  /** Text or caption, with its markup. */
  readonly text: string;
  readonly targetId: string;
  readonly replyTo: number | null;
  readonly albumId: string | null;
}

export interface StoredFile {
  readonly id: string;
  readonly kind: string;
  readonly upload: Upload;
}
