/** What a network takes of files, as data. A figure that is null is not limited. */
import type { MediaKind, MediaUse } from '#schemas/media.ts';

export interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** Width divided by height. */
export interface AspectBounds extends Bounds {
  /** What bars are made to: the ratios as the network writes them, without the slack that rounding is given. */
  readonly nominal: Bounds;
}

/** Sides in pixels as shown; `long` and `short` are the longer and the shorter one. */
export interface SizeRules {
  readonly aspect: AspectBounds | null;
  readonly width: Bounds | null;
  readonly height: Bounds | null;
  readonly long: Bounds | null;
  readonly short: Bounds | null;
  /** Width times height. */
  readonly maxPixels: number | null;
  /** Width plus height. */
  readonly maxSum: number | null;
}

/** A codec by ffprobe's name; null takes every profile. */
export interface CodecRule {
  readonly codec: string;
  readonly profiles: readonly string[] | null;
}

export interface AudioRules {
  readonly codecs: readonly CodecRule[];
  readonly maxChannels: number;
  readonly maxSampleRate: number;
  readonly maxKbps: number | null;
}

export interface VideoRules extends SizeRules {
  /** As MediaProbe names them. */
  readonly containers: readonly string[];
  readonly codecs: readonly CodecRule[];
  readonly pixelFormats: readonly string[];
  readonly fps: Bounds;
  /** Whether pictures must come at one pace. */
  readonly constantRate: boolean;
  readonly maxKbps: number | null;
  readonly bytes: Bounds;
  readonly durationMs: Bounds;
  /** Whether the index must come before the data, where the container has one. */
  readonly indexFirst: boolean;
  /** Whether an edit list is refused. */
  readonly noEditList: boolean;
  /** Whether PQ and HLG are shown as such. Without: they are made SDR. */
  readonly hdr?: true;
  /** Whether pictures that a player is to turn are taken as they lie. Without: they are made upright. */
  readonly turned?: true;
  /** A file without sound is always taken. */
  readonly audio: AudioRules;
  /** Class of the house's ladder that a rendition starts from. */
  readonly target: VideoClass;
}

/** `1080`: at most 1920 by 1080 either way round; `720`: 1280 by 720; `2160`: 3840 by 2160. */
export type VideoClass = '2160' | '1080' | '720';

export interface ImageRules extends SizeRules {
  /** As MediaProbe names them. */
  readonly formats: readonly string[];
  readonly bytes: Bounds;
  readonly target: ImageClass;
}

/** `large`: at most 2048 a side; `social`: at most 1440 wide, 1920 high, 1080 on its shorter side; `thumbnail`: 1280. */
export type ImageClass = 'large' | 'social' | 'thumbnail';

/** A moving gif that is taken as it is; one that is over these is made a video. */
export interface GifRules extends SizeRules {
  readonly bytes: Bounds;
  readonly maxFrames: number;
  /** Width times height times frames. */
  readonly maxPixelsOfAll: number | null;
}

export interface DocumentRules {
  readonly contentTypes: readonly string[];
  readonly bytes: Bounds;
}

/** Null: files of that kind are not taken for this use. */
export interface UseRules {
  readonly image: ImageRules | null;
  readonly video: VideoRules | null;
  /** Null: a moving gif is taken as a video, without sound. */
  readonly gif: GifRules | null;
  readonly document: DocumentRules | null;
}

export type MediaUseRules = Readonly<Partial<Record<MediaUse, UseRules>>> & { readonly feed: UseRules };

/** One of the shapes the media of a post may have; a post fits when it fits one row of its use. */
export interface PostShape {
  readonly use: MediaUse;
  /** As the network shows them: a gif that is published as a video counts as one. */
  readonly kinds: readonly MediaKind[];
  readonly min: number;
  readonly max: number;
  /** Refused together unless their ratios are equal. */
  readonly sameAspect?: boolean;
}

export interface NetworkMedia {
  readonly shapes: readonly [PostShape, ...PostShape[]];
  readonly files: MediaUseRules;
  /**
   * What the network shows the files of one post as. Default: the feed, always.
   * @param asked by the override `contentType`; null: the feed, or nothing
   */
  readonly useOf?: (asked: 'reel' | 'story' | null, kinds: readonly MediaKind[]) => MediaUse;
  /** Uses whose cover the network takes by a call of its own once the post is out. Absent: it goes out with the post. */
  readonly coverAfter?: readonly MediaUse[];
  /** The caller may choose a frame of the video as its cover. */
  readonly coverFrame?: true;
}
