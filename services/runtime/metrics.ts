import { createRequire } from 'node:module';
import type * as prom from 'prom-client';

/**
 * The parts of prom-client that we use. Its index loads a client of Pushgateway as well, that one `http`, and that one
 * Node's whole `fetch`: 7 MB in every thread of standalone, of which only the api's serves HTTP.
 */
const require = createRequire(import.meta.url);

export const Registry: typeof prom.Registry = require('prom-client/lib/registry');
export type Registry = prom.Registry;
export const AggregatorRegistry: typeof prom.AggregatorRegistry = require('prom-client/lib/cluster');
export const collectDefaultMetrics: typeof prom.collectDefaultMetrics = require('prom-client/lib/defaultMetrics');

export const Counter: typeof prom.Counter = require('prom-client/lib/counter');
export type Counter = prom.Counter;
export const Gauge: typeof prom.Gauge = require('prom-client/lib/gauge');
export type Gauge = prom.Gauge;
export const Histogram: typeof prom.Histogram = require('prom-client/lib/histogram');
export type Histogram = prom.Histogram;

/**
 * One query for gauges that show different figures of its answer. Each gauge must collect by itself: a registry collects
 * all of them side by side, so a gauge that another one's `collect` sets shows the figure of the scrape before.
 */
export const sharing = <T>(ask: () => Promise<T>): (() => Promise<T>) => {
  let asking: Promise<T> | null = null;
  return () => {
    asking ??= ask().finally(() => {
      asking = null;
    });
    return asking;
  };
};
