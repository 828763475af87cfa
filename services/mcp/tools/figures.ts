import { Type } from 'typebox';
import { Rejection } from '#domain/decider.ts';
import type { ToolCall } from '../call.ts';

/**
 * Figures for a model. The operations say null for a figure that no network reports, and leave out one that was not
 * fetched yet. Models read both as zero, so a figure that is unknown is a word here.
 */

export type FiguresOut = Record<string, number | 'not reported' | 'not fetched yet'>;
/** By name. The instructions and the tools say what the words mean. */
export const Figures = Type.Unsafe<FiguresOut>({
  type: 'object',
  additionalProperties: { anyOf: [{ type: 'number' }, { type: 'string' }] },
});

/** Those that most questions are about. */
export const usualFigures = [
  ...(['impressions', 'likes', 'comments', 'shares', 'saves', 'clicks', 'reposts', 'quotes', 'videoViews'] as const),
  ...(['engagementRate'] as const),
] as const;

export const figuresOf = (found: Readonly<Record<string, unknown>>, names: readonly string[]): FiguresOut =>
  Object.fromEntries(
    names.map((name) => {
      const value = found[name];
      if (typeof value === 'number') return [name, value];
      return [name, value === null ? 'not reported' : 'not fetched yet'];
    }),
  );

const shownFigure = (name: string, value: FiguresOut[string]): string => {
  if (typeof value !== 'number') return `${name} ${value}`;
  return `${name} ${name === 'engagementRate' ? `${(value * 100).toFixed(2)} %` : value}`;
};

export const figureLine = (figures: FiguresOut): string =>
  Object.entries(figures)
    .map(([name, value]) => shownFigure(name, value))
    .join(', ');

/** The zone of the days; null where the credential may not read the workspace. */
export const zoneOf = async (call: ToolCall): Promise<string | null> => {
  if (!call.may('agency.read')) return null;
  try {
    return (await call.invoke<{ readonly timezone: string }>('getAgency')).data.timezone;
  } catch (error) {
    if (error instanceof Rejection) return null;
    throw error;
  }
};

export const zoneWords = (timezone: string | null): string => timezone ?? 'the time zone of the workspace';

export const asOfWords = (asOf: string | null): string =>
  asOf === null ? 'Nothing was measured in this window yet' : `As of ${asOf}`;
