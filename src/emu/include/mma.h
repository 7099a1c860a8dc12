#ifndef FA_EMU_MMA_H
#define FA_EMU_MMA_H
#endif
