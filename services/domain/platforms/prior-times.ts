/**
 * When people are on a network, before anything was observed: how many times the usual engagement a post gets by the
 * hour and by the weekday it goes out, in the zone of its audience.
 *
 * The figures are assumptions, neither measured by us nor published by a network: few people at night, more in breaks and
 * in the evening, professional networks in office hours. They are mild so that some weeks of an account's own posts
 * outweigh them.
 */

export interface PriorTimes {
  /** 24, of the hours from 0. */
  readonly hours: readonly number[];
  /** Seven, from Monday. */
  readonly weekdays: readonly number[];
}

const night = [0.75, 0.65, 0.6, 0.6, 0.62, 0.7] as const;

/** Breaks and evenings. */
export const leisure: PriorTimes = {
  hours: [
    ...night,
    ...[0.85, 0.97, 1.05, 1.08, 1.08, 1.12],
    ...[1.16, 1.1, 1.05, 1.05, 1.08, 1.13],
    ...[1.18, 1.2, 1.18, 1.1, 0.97, 0.85],
  ],
  weekdays: [1, 1.03, 1.05, 1.04, 1, 0.95, 0.94],
};

/** Late afternoons and evenings, more at the weekend: what takes time to watch or to browse. */
export const evening: PriorTimes = {
  hours: [
    ...night,
    ...[0.78, 0.85, 0.92, 0.96, 1, 1.04],
    ...[1.08, 1.07, 1.06, 1.08, 1.12, 1.17],
    ...[1.22, 1.25, 1.24, 1.16, 1, 0.85],
  ],
  weekdays: [0.97, 0.98, 0.99, 1, 1.02, 1.05, 1.03],
};

/** Morning to evening, with the news. */
export const talk: PriorTimes = {
  hours: [
    ...night,
    ...[0.9, 1.04, 1.14, 1.18, 1.16, 1.14],
    ...[1.16, 1.12, 1.08, 1.06, 1.06, 1.08],
    ...[1.08, 1.06, 1.04, 1, 0.92, 0.83],
  ],
  weekdays: [1.02, 1.05, 1.05, 1.04, 1, 0.92, 0.92],
};

/** Office hours. */
export const office: PriorTimes = {
  hours: [
    ...night,
    ...[0.85, 1.05, 1.18, 1.22, 1.24, 1.2],
    ...[1.18, 1.12, 1.1, 1.08, 1.05, 1.02],
    ...[0.95, 0.9, 0.86, 0.82, 0.78, 0.74],
  ],
  weekdays: [1.05, 1.12, 1.12, 1.1, 1, 0.8, 0.81],
};
