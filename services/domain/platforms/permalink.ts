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
    let complete = true;
    const address = template.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = values[name] ?? '';
      complete &&= value !== '';
      return value;
    });
    if (complete) return address;
  }
  return null;
}
