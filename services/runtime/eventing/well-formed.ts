import type { Json } from '#contracts/ports/platform.ts';

/** Cleans text from outside before it becomes an event: well-formed, without NUL. */

/** Cuts the text to `max` characters, never inside a surrogate pair. */
export const wellFormedText = (text: string, max: number): string => {
  const whole = text.toWellFormed().replaceAll('\0', '');
  if (whole.length <= max) return whole;
  const last = whole.charCodeAt(max - 1);
  return whole.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max);
};

export const wellFormedJson = (value: Json): Json => {
  if (typeof value === 'string') return wellFormedText(value, value.length);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(wellFormedJson);
  return Object.fromEntries(
    Object.entries(value as { readonly [key: string]: Json }).map(([key, member]) => [
      wellFormedText(key, key.length),
      wellFormedJson(member),
    ]),
  );
};

/** ISO 8601 in UTC with milliseconds; null where the text is not an instant. */
export const wellFormedInstant = (text: string): string | null => {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) || at.getUTCFullYear() > 9999 || at.getUTCFullYear() < 0 ? null : at.toISOString();
};
