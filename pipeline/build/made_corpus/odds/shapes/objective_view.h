#import <Foundation/Foundation.h>

/* An Objective-C interface under the extension that C shares with it. */
@interface OddsView : NSObject

@property(nonatomic, copy) NSString *title;
@property(nonatomic) double opacity;

- (instancetype)initWithTitle:(NSString *)title;
- (void)fadeTo:(double)opacity during:(double)seconds;

@end
