import type { Platform } from '#schemas/common.ts';
import { rulesOf } from './registry.ts';

export interface PermalinkParts {
  /** The network's id of the post. */
  readonly id: string;
  /** Its short form in addresses, where it has one: shortcode, record key, message number. */
  readonly code?: string;
  readonly username: string | null;
  /** The account's id on the network. */
  readonly account: string;
}

/** The post's public address; null: no template has all its members. */
export function permalinkOf(platform: Platform, parts: PermalinkParts): string | null {
  const values: Readonly<Record<string, string | null | undefined>> = { ...parts };
  for (const template of rulesOf(platform).publish.permalinks) {
    const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '');
    if (names.every((name) => typeof values[name] === 'string' && values[name] !== '')) {
      return template.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '');
    }
  }
  return null;
}
